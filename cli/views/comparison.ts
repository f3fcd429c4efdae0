import type { Comparison, ValueDifference } from '../../profiles/difference.ts';
import type { JsonValue } from '../../src/json.ts';
import type { Io } from '../command.ts';
import { type Style, style } from './style.ts';
import { count, pathText, plainText, valueText } from './value.ts';

/** What is compared, for the header. */
export interface SideLabel {
  label: string;
  /** What it is: `profile, version 14`, `reg`. */
  kind: string;
}

/** Shows where two sets of settings differ: text for people, or JSON, which is a promise. */
export function showComparison(
  io: Io,
  output: string | undefined,
  sides: readonly [SideLabel, SideLabel],
  found: Comparison,
  part?: string,
): void {
  if (output !== 'json') {
    io.out(comparisonText(sides, found, style(io.colour)));
    return;
  }
  const [before, after] = sides;
  const document = {
    kind: 'Comparison',
    formatVersion: 1,
    before,
    after,
    ...(part === undefined ? {} : { part }),
    differences: found.values.map(({ path, key, sensitive, before: old, after: now }) => ({
      path,
      ...(key === undefined ? {} : { key }),
      ...(old === undefined ? {} : { before: covered(old, sensitive) }),
      ...(now === undefined ? {} : { after: covered(now, sensitive) }),
    })),
    locks: found.locks,
  };
  io.out(`${JSON.stringify(document, null, 2)}\n`);
}

function comparisonText([a, b]: readonly [SideLabel, SideLabel], { values, locks }: Comparison, paint: Style): string {
  const head = [`--- ${plainText(a.label)} (${a.kind})`, `+++ ${plainText(b.label)} (${b.kind})`]
    .map(paint.bold)
    .join('\n');
  const lines = [
    ...values.map((each) => `  ${pathText(each)}: ${side(each, 'before')} → ${side(each, 'after')}`),
    ...locks.map(({ path, before }) => `  ${path}: ${before ? 'locked → not locked' : 'not locked → locked'}`),
  ];
  const end = lines.length === 0 ? 'No differences.' : count(lines.length, 'difference');
  return [head, '', ...(lines.length === 0 ? [] : [...lines, '']), end, ''].join('\n');
}

function side({ sensitive, ...values }: ValueDifference, which: 'before' | 'after'): string {
  const value = values[which];
  return value === undefined ? '(absent)' : valueText(covered(value, sensitive));
}

function covered(value: JsonValue, sensitive: boolean): JsonValue | { sensitive: true } {
  return sensitive ? { sensitive: true } : value;
}
