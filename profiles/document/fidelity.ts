import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { isSection } from '../../src/settings/fields.ts';
import type { Finding } from '../../src/settings/issue.ts';
import { leafAt, leaves, pointerNames, pointerOf, pointerTo } from '../../src/settings/leaf-paths.ts';
import { REMOVED_SETTINGS } from '../../src/settings/left-over.ts';
import { namesBefore, originOf } from '../../src/settings/migrate.ts';
import { equal, own } from '../../src/settings/own.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { unknownKeys } from '../../src/settings/unknown-keys.ts';
import type { Part } from '../formats/format.ts';

/** The fate of one setting of an imported profile. */
export type Fidelity =
  /** The setting has the same value at the same path. */
  | { outcome: 'kept'; part: Part; path: string }
  /** The setting is in the result with a difference, which a clause describes. */
  | { outcome: 'changed'; part: Part; path: string; from?: string; reason: string }
  /** The setting is not in the result. `place` uses the names of the format. */
  | { outcome: 'lost'; part?: Part; place: string; reason: string };

type Outcome = Fidelity['outcome'];

/** Counts the settings of each outcome. */
export function outcomeCounts(entries: readonly Fidelity[]): Record<Outcome, number> {
  const counts = { kept: 0, changed: 0, lost: 0 };
  for (const { outcome } of entries) counts[outcome] += 1;
  return counts;
}

interface Accounting {
  part: Part;
  /** Settings as they were migrated. */
  written: JsonObject;
  /** Settings as they were read. */
  given: JsonObject;
  known: JsonObject;
  canonical: JsonObject;
  origins: ReadonlyMap<string, string>;
  findings: readonly Finding[];
}

/** Returns an entry for each setting of the result, and for each written value that is in none of them. */
export function accountFor({ part, written, given, known, canonical, origins, findings }: Accounting): Fidelity[] {
  const taken = new Map<string, SettingPath>();
  const entries: Fidelity[] = [];
  for (const [path] of leaves(known)) {
    const from = originOf(origins, path);
    taken.set(pointerOf(from), path);
    const reason = changeOf(path, { from, before: leafAt(written, from), value: leafAt(canonical, path) ?? null });
    if (path === 'version' && own(given, 'version') === undefined) {
      entries.push({
        outcome: 'changed',
        part,
        path,
        reason: 'it was missing, and the application does not start without it',
      });
    } else if (reason !== undefined) {
      entries.push({ outcome: 'changed', part, path, ...(from === path ? {} : { from }), reason });
    } else if (path !== 'version') entries.push({ outcome: 'kept', part, path });
  }
  const refused = new Map(findings.map((finding) => [finding.pointer, refusal(finding)]));
  for (const [pointer, reason] of refused) {
    if (pointer !== '') entries.push({ outcome: 'lost', part, place: pointerNames(pointer).join('.'), reason });
  }
  // A refused item loses the whole list.
  const around = new Set([...refused.keys()].flatMap(pointersUpTo));
  const suggestions = new Map(
    unknownKeys(canonical).map(({ pointer, suggestion }) => [
      pointerTo(namesBefore(origins, pointerNames(pointer))),
      suggestion,
    ]),
  );
  for (const names of unusedNames(written, [], taken)) {
    if (around.has(pointerTo(names))) continue;
    entries.push({ outcome: 'lost', part, place: names.join('.'), reason: lossReason(names, suggestions, taken) });
  }
  return entries;
}

/** Returns the pointer and those of its parents. */
function pointersUpTo(pointer: string): string[] {
  const names = pointerNames(pointer);
  return names.map((_, index) => pointerTo(names.slice(0, index + 1)));
}

function refusal({ expected }: Finding): string {
  return `the application refuses the whole profile because of it${expected === undefined ? '' : `: expected ${expected}`}`;
}

function changeOf(
  path: string,
  { from, before, value }: { from: string; before: JsonValue | undefined; value: JsonValue },
): string | undefined {
  if (before === undefined) return 'the application adds it to a locked profile of this version';
  if (path === 'version')
    return equal(before, value) ? undefined : `migrated from ${String(before)} to ${String(value)}`;
  if (from !== path) return 'it moved in a later version';
  return equal(before, value) ? undefined : 'it is written in canonical form';
}

/** Yields the names of values that no setting of the result came from; for a section without any, its own name. */
function* unusedNames(
  object: JsonObject,
  above: readonly string[],
  taken: ReadonlyMap<string, SettingPath>,
): Generator<string[]> {
  for (const [name, value] of Object.entries(object)) {
    const names = [...above, name];
    const pointer = pointerTo(names);
    if (taken.has(pointer)) continue;
    const around = [...taken.keys()].some((each) => each.startsWith(`${pointer}/`));
    if (isObject(value) && (around || isSection(names.join('.')))) yield* unusedNames(value, names, taken);
    else yield names;
  }
}

function lossReason(
  names: readonly string[],
  suggestions: ReadonlyMap<string, string | undefined>,
  taken: ReadonlyMap<string, SettingPath>,
): string {
  const path = names.join('.');
  if (REMOVED_SETTINGS.some((ended) => ended === path || ended.startsWith(`${path}.`)))
    return 'the setting was removed and has no effect';
  if ([...taken.values()].some((each) => each === path)) return 'the value at its older name is used instead';
  const suggestion = suggestions.get(pointerTo(names));
  return `it is not a setting${suggestion === undefined ? '' : `; did you mean ${suggestion}?`}`;
}
