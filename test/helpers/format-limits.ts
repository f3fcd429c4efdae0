import fc from 'fast-check';
import { entryPath } from '../../profiles/formats/tree.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { Texts } from './fleet-arbitrary.ts';
import { anyText, hostileText, isXmlText } from './hostile-text.ts';

/** Paths of everything in a profile that the format cannot hold; everything else must be read back from it. */
export function cannotHold(format: string, profile: JsonObject): string[] {
  const holds = limitOf(format);
  return texts(profile).flatMap((each) => (holds(each) ? [] : [each.path]));
}

/** Any text that the format can hold at its position, so that few profiles are rejected for a single one. */
export function heldTexts(format: string): Texts {
  const holds = limitOf(format);
  const held = (kind: Text['kind']) =>
    fc.oneof(hostileText(), anyText()).filter((text) => holds({ text, kind, siblings: [], path: '' }));
  return { value: held('value'), entry: held('entry'), key: held('key') };
}

type Limit = (text: Text) => boolean;

function limitOf(format: string): Limit {
  const limit = LIMITS[format];
  if (!limit) throw new Error(`nobody said what the format ${format} cannot hold`);
  return limit;
}

const isXml: Limit = ({ text }) => isXmlText(text);

const LIMITS: Readonly<Record<string, Limit>> = {
  plist: isXml,
  mobileconfig: isXml,
  json: () => true,
  reg: ({ text, kind, siblings }) => {
    if (text.includes('\0') || (kind !== 'value' && text === '')) return false;
    return kind !== 'key' || !(/[\p{Cc}\p{Cs}]/u.test(text) || text.length > 255 || hasDouble(text, siblings));
  },
};

/** The second of two names that differ only in case is rejected; maps are written in the order of their lower-case keys. */
function hasDouble(name: string, siblings: readonly string[]): boolean {
  return siblings.some((other) => other !== name && isOneName(other, name) && isBefore(other, name));
}

function isOneName(a: string, b: string): boolean {
  const upper = (text: string) =>
    Array.from(text, (sign) => (sign.toUpperCase().length === sign.length ? sign.toUpperCase() : sign)).join('');
  return a.toLowerCase() === b.toLowerCase() || upper(a) === upper(b);
}

function isBefore(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase() ? a < b : a.toLowerCase() < b.toLowerCase();
}

interface Text {
  path: string;
  text: string;
  kind: 'value' | 'entry' | 'key';
  siblings: readonly string[];
}

/** Every text of a profile that its author chose, without the keys of sections. */
export function texts(value: JsonValue, path = '', isMap = false): Text[] {
  const own = { path, siblings: [] };
  if (typeof value === 'string') return [{ ...own, text: value, kind: 'value' }];
  if (Array.isArray(value)) {
    return value.map((entry, index) => ({
      path: `${path}[${index}]`,
      text: String(entry),
      kind: 'entry',
      siblings: [],
    }));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = entryPath(path, name);
    const key: Text[] = isMap ? [{ path: at, text: name, kind: 'key', siblings: Object.keys(value) }] : [];
    return [...key, ...texts(inner, at, MAPS.has(at))];
  });
}

const MAPS = new Set(['extensions', 'WSL.integrations', 'diagnostics.mutedChecks', 'application.extensions.installed']);
