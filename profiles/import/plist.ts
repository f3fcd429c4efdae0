import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import {
  isDictionary,
  isOther,
  type PlistDictionary,
  type PlistValue,
  xmlPlist,
} from '../../src/policies/plist-value.ts';
import { decoded } from '../../src/policies/policy-file.ts';
import { put } from '../../src/settings/own.ts';
import type { Importer, Loss } from './importer.ts';
import { partOfName } from './part-name.ts';

/** A property list of macOS, as XML in UTF-8 or binary. */
export const plistImporter: Importer = {
  name: 'plist',
  platform: 'darwin',
  recognises: isPlist,
  async read(bytes, label) {
    const value = await plistOf(bytes, label);
    if (!isDictionary(value)) throw notUnderstood(label, 'it does not hold a dictionary');
    const part = partOfName(label);
    return [{ ...(part ? { part } : {}), source: label, ...settingsOf(value) }];
  },
};

/** True for what begins as a property list does, in either form. */
export function isPlist(bytes: Uint8Array): boolean {
  const head = headOf(bytes);
  return head.startsWith('bplist') || /^<(?:\?xml|!DOCTYPE plist|plist|!--)/.test(head);
}

/** The first letters, whatever the encoding. */
function headOf(bytes: Uint8Array): string {
  const wide = wideEncoding(bytes);
  return new TextDecoder(wide ?? 'utf-8').decode(bytes.subarray(0, 1024)).trimStart();
}

function wideEncoding(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

/** @throws RdError `ERR_PROFILE_INVALID` for what is not understood. */
export async function plistOf(bytes: Uint8Array, label: string): Promise<PlistValue> {
  try {
    if (headOf(bytes).startsWith('bplist')) {
      const { binaryPlist } = await import('./binary-plist.ts');
      return binaryPlist(bytes);
    }
    return await xmlPlist(textOf(bytes));
  } catch (cause) {
    throw notUnderstood(label, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function textOf(bytes: Uint8Array): string {
  const wide = wideEncoding(bytes);
  const text = decoded(bytes, wide);
  const said = /^<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']/i.exec(text?.trimStart() ?? headOf(bytes))?.[1];
  const is = wide ? 'UTF-16' : 'UTF-8';
  if (said !== undefined && !READ[is].test(said)) {
    const other = Object.values(READ).some((each) => each.test(said));
    throw new Error(
      other ? `it says that it is in ${said}, and it is in ${is}` : `it is in ${said}; UTF-8 and UTF-16 are read`,
    );
  }
  if (text === undefined) throw new Error(`it is not ${is}`);
  return text;
}

/** What a list in each encoding may say of itself. */
const READ = { 'UTF-8': /^(?:utf-8|us-ascii)$/i, 'UTF-16': /^utf-16/i };

/** The settings in a dictionary; what no setting can be is lost, with its path. */
export function settingsOf(
  dictionary: PlistDictionary,
  above: readonly string[] = [],
): { settings: JsonObject; lost: Loss[] } {
  const lost: Loss[] = [];
  return { settings: objectOf(dictionary, above, lost), lost };
}

function notUnderstood(label: string, reason: string, cause?: unknown): RdError {
  return new RdError('ERR_PROFILE_INVALID', `${label} is not a property list that can be read: ${reason}`, {
    ...(cause === undefined ? {} : { cause }),
    advice: 'Export it again, or check it with `plutil -lint` on macOS.',
  });
}

function objectOf(dictionary: PlistDictionary, above: readonly string[], lost: Loss[]): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of dictionary) {
    const read = jsonOf(value, [...above, name], lost);
    if (read !== undefined) put(object, name, read);
  }
  return object;
}

function jsonOf(value: PlistValue, names: readonly string[], lost: Loss[]): JsonValue | undefined {
  if (typeof value !== 'object') return value;
  if (isDictionary(value)) return objectOf(value, names, lost);
  if (isOther(value)) {
    // No JSON can be made of it, which is how the application reads a list.
    lost.push({
      place: names.join('.'),
      reason: `the application refuses the whole profile for it: it is ${value.other}`,
      refused: true,
    });
    return undefined;
  }
  const items = value.map((item, index) => jsonOf(item, [...names, String(index)], lost));
  // A list is one value: without one of its items it would say something else.
  return items.every((item) => item !== undefined) ? items : undefined;
}
