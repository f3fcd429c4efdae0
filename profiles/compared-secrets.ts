import type { JsonObject } from '../src/json.ts';
import { leafAt, setLeaf } from '../src/settings/leaf-paths.ts';
import { copyOfObject, equal } from '../src/settings/own.ts';
import type { UnreadSecret } from './secrets.ts';

/** One of two sets of settings, and the secrets that it only refers to. */
export interface WithSecrets {
  label: string;
  settings: JsonObject;
  unread: readonly UnreadSecret[];
}

/**
 * Makes two sets of settings comparable where a secret could not be read: a value on the other side may be the same one, and
 * counts as equal, with a sentence that says so. A side that does not mention the setting differs.
 */
export function settleSecrets(a: WithSecrets, b: WithSecrets): { a: JsonObject; b: JsonObject; notes: string[] } {
  const [settledA, settledB] = [copyOfObject(a.settings), copyOfObject(b.settings)];
  const notes: string[] = [];
  for (const [one, settings, other, others] of [
    [a, settledA, b, settledB],
    [b, settledB, a, settledA],
  ] as const) {
    for (const { path, reference, reason } of one.unread) {
      const twin = other.unread.find((each) => each.path === path);
      if (!twin) setLeaf(settings, path, leafAt(others, path) ?? UNKNOWN);
      else {
        setLeaf(settings, path, UNKNOWN);
        if (equal(twin.reference, reference)) continue;
      }
      if (twin ? one === a : leafAt(others, path) !== undefined) {
        notes.push(`${path} cannot be compared: ${one.label} only refers to it, and ${reason}`);
      }
    }
  }
  return { a: settledA, b: settledB, notes };
}

/** Stands for a secret, of which nothing but its being there is shown. */
const UNKNOWN = '(secret, not read)';
