import { defined, isObject, type JsonValue } from '../../src/json.ts';
import { BLOCK_NAMES } from '../../src/settings/blocks.ts';
import { MANAGED_FIELDS } from '../../src/settings/fields.ts';
import { parseDefer, parseWindow } from '../../src/settings/maintenance-window.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { HEAL_LEVELS, type HealLevel, type WatchRules } from '../../src/settings/watch-rules.ts';
import { child, describe, type Report, reportUnknown, reportValue } from './report.ts';

/** The `watch` block of one document. */
export type WatchBlock = Partial<WatchRules>;

/** The `apply` block, as written and valid. */
export interface ApplyBlock {
  window: string;
  maxDefer?: string;
}

/** Checks the `watch` block; members with a finding are left out. */
export function readWatch(value: JsonValue, report: Report): WatchBlock {
  if (!isObject(value)) {
    report('/watch', `watch must be a mapping, not ${describe(value)}`, { expected: 'object with heal and fields' });
    return {};
  }
  for (const key of Object.keys(value)) {
    if (key !== 'heal' && key !== 'fields') reportUnknown(child('/watch', key), key, ['heal', 'fields'], report);
  }
  const { heal, fields } = value;
  const level = heal === undefined ? undefined : levelOf(heal, '/watch/heal', report);
  return {
    ...defined({ heal: level }),
    ...(fields === undefined ? {} : { fields: readFields(fields, report) }),
  };
}

function readFields(value: JsonValue, report: Report): Record<string, HealLevel> {
  const at = '/watch/fields';
  if (!isObject(value)) {
    report(at, `fields must be a mapping of settings to ${HEAL_LEVELS.join(', ')}, not ${describe(value)}`, {
      expected: 'object',
    });
    return {};
  }
  const levels: Record<string, HealLevel> = {};
  for (const [path, inner] of Object.entries(value)) {
    const pointer = child(at, path);
    if (!isWatchable(path)) {
      const suggestion = nearest(path, names());
      report(pointer, `${path} is not a setting or section of a profile`, {
        part: 'key',
        ...defined({ suggestion }),
      });
      continue;
    }
    const level = levelOf(inner, pointer, report);
    if (level !== undefined) levels[path] = level;
  }
  return levels;
}

function levelOf(value: JsonValue, pointer: string, report: Report): HealLevel | undefined {
  const level = HEAL_LEVELS.find((word) => word === value);
  if (level === undefined) reportValue(pointer, value, HEAL_LEVELS, report);
  return level;
}

const AROUND = ['state', 'portForwards', ...BLOCK_NAMES];

function isWatchable(path: string): boolean {
  return path !== 'version' && names().some((name) => name === path || name.startsWith(`${path}.`));
}

function names(): string[] {
  return [...MANAGED_FIELDS.map(({ path }) => path), ...AROUND];
}

/** Checks the `apply` block; returns undefined if it has a finding. */
export function readApply(value: JsonValue, report: Report): ApplyBlock | undefined {
  if (!isObject(value)) {
    report('/apply', `apply must be a mapping, not ${describe(value)}`, {
      expected: 'object with window and maxDefer',
    });
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (key !== 'window' && key !== 'maxDefer')
      reportUnknown(child('/apply', key), key, ['window', 'maxDefer'], report);
  }
  const { window, maxDefer } = value;
  if (typeof window !== 'string') {
    const expected = 'a window, such as "Sat 02:00-04:00"';
    if (window === undefined) report('/apply', 'window is missing', { expected });
    else report('/apply/window', `window must be text, not ${describe(window)}`, { expected });
    return undefined;
  }
  const spans = parseWindow(window);
  if (!Array.isArray(spans)) {
    report('/apply/window', spans.message, { expected: spans.expected });
    return undefined;
  }
  if (maxDefer === undefined) return { window };
  if (typeof maxDefer === 'string' && parseDefer(maxDefer) !== undefined) return { window, maxDefer };
  report('/apply/maxDefer', `maxDefer cannot be ${describe(maxDefer)}`, { expected: 'a time such as 12h, 7d or 2w' });
  return undefined;
}
