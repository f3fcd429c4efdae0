import type { JsonObject } from '../../src/json.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { Part } from '../formats/format.ts';
import { entryPath } from '../formats/tree.ts';

/** One of the two deployment profiles, at its own version and by the names of that version. */
export interface CheckPart {
  part: Part;
  settings: JsonObject;
}

/**
 * What becomes of a field: `refused`: the application does not start with the profile, or quits as soon as it needs the value;
 * `ignored`: it starts without what the field says; `changed`: it starts with something else or something more.
 */
export type Effect = 'refused' | 'ignored' | 'changed';

/** One thing that a release does not take as it is written. */
export interface CheckFinding {
  /** Absent for what stands in no part of the file. */
  part?: Part;
  /** Dotted path as the profile has it; `version` for the profile as a whole. */
  path: string;
  /** The same as a list of names; of something that the release adds, where it would stand. */
  names: readonly string[];
  effect: Effect;
  /** A clause that says the same for every release that it concerns, so that equal findings can be merged. */
  reason: string;
  /** The name or value that was probably meant. */
  suggestion?: string;
}

export type Verdict = 'accepted' | 'partly' | 'rejected';

/** What one release makes of the profile on one platform. */
export interface CheckCell {
  /** `1.20` */
  release: string;
  settingsVersion: number;
  platform: Platform;
  verdict: Verdict;
  /** A finding that several cells share is the same object in each. */
  findings: readonly CheckFinding[];
}

/** Takes findings of one part, and gives equal ones as one object. */
export interface Notes {
  note(effect: Effect, names: readonly string[], reason: string, suggestion?: string): CheckFinding;
}

export function notesOf(part: Part): Notes {
  // By reason first: there are few, and mostly the same text each time, which is compared without being read.
  const known = new Map<string, Map<string, CheckFinding>>();
  const keys = new WeakMap<readonly string[], string>();
  const keyOf = (names: readonly string[]) => {
    let key = keys.get(names);
    if (key === undefined) {
      key = names.join('\n');
      keys.set(names, key);
    }
    return key;
  };
  return {
    note(effect, names, reason, suggestion) {
      let alike = known.get(reason);
      if (!alike) {
        alike = new Map();
        known.set(reason, alike);
      }
      const place = keyOf(names);
      let finding = alike.get(place);
      if (!finding) {
        const path = names.reduce(entryPath, '');
        finding = { part, path, names, effect, reason, ...(suggestion === undefined ? {} : { suggestion }) };
        alike.set(place, finding);
      }
      return finding;
    },
  };
}

export function verdictOf(findings: Iterable<CheckFinding>): Verdict {
  let verdict: Verdict = 'accepted';
  for (const { effect } of findings) {
    if (effect === 'refused') return 'rejected';
    if (effect === 'ignored') verdict = 'partly';
  }
  return verdict;
}
