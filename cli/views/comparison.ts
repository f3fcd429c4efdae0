import type { Comparison, ValueDifference } from '../../profiles/document/comparison.ts';
import type { JsonValue } from '../../src/json.ts';
import { wordList } from '../../src/settings/word-list.ts';
import type { Io } from '../command.ts';
import { type Style, style } from './style.ts';
import { count, pathText, plainText, valueText } from './value.ts';

/** A side of the comparison, for the header. */
export interface SideLabel {
  label: string;
  /** Its kind: `profile, version 14`, `reg`. */
  kind: string;
}

interface ShownComparison extends Comparison {
  /** Differing keys of two profiles that are neither settings nor locks: `state`. */
  besides: readonly string[];
}

/** Shows the differences: text, or JSON with a stable shape. */
export function showComparison(
  io: Io,
  output: string | undefined,
  sides: readonly [SideLabel, SideLabel],
  found: ShownComparison,
  part?: string,
): void {
  if (output !== 'json') {
    io.out(comparisonText(sides, found, style(io.color)));
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
    besides: found.besides,
  };
  io.out(`${JSON.stringify(document, null, 2)}\n`);
}

function comparisonText(
  [a, b]: readonly [SideLabel, SideLabel],
  { values, locks, besides }: ShownComparison,
  paint: Style,
): string {
  const head = [`--- ${plainText(a.label)} (${a.kind})`, `+++ ${plainText(b.label)} (${b.kind})`]
    .map(paint.bold)
    .join('\n');
  const lines = [
    ...values.map((each) => `  ${pathText(each)}: ${side(each, 'before')} → ${side(each, 'after')}`),
    ...locks.map(({ path, before }) => `  ${path}: ${before ? 'locked → not locked' : 'not locked → locked'}`),
  ];
  return [head, '', ...(lines.length === 0 ? [] : [...lines, '']), ending(lines.length, besides), ''].join('\n');
}

function ending(differences: number, besides: readonly string[]): string {
  if (besides.length === 0) return differences === 0 ? 'No differences.' : count(differences, 'difference');
  const found = differences === 0 ? 'No differences in' : `${count(differences, 'difference')} of`;
  return `${found} settings and locks; ${wordList(besides)} ${besides.length === 1 ? 'differs' : 'differ'}, which is not compared.`;
}

function side({ sensitive, ...values }: ValueDifference, which: 'before' | 'after'): string {
  const value = values[which];
  return value === undefined ? '(absent)' : valueText(covered(value, sensitive));
}

function covered(value: JsonValue, sensitive: boolean): JsonValue | { sensitive: true } {
  return sensitive ? { sensitive: true } : value;
}
