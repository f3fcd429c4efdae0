import { undoes } from '../../plan/healing.ts';
import type { Author } from '../../plan/history.ts';
import { commonFields } from '../../plan/kept.ts';
import type { KeptRecord } from '../../state/kept-file.ts';
import type { Watched } from './report.ts';

/** Returns the stored part of a kept profile. */
export function recordOf({ profile, fields, replaced, applying }: KeptRecord): KeptRecord {
  return { profile, fields, ...(replaced ? { replaced } : {}), ...(applying ? { applying } : {}) };
}

/** Returns a record with only the earlier profiles that an automatic rollback may need. `oldest` is the oldest version that one may go back to. */
export function withNeeded(record: KeptRecord, oldest: number): KeptRecord {
  const { replaced, ...rest } = recordOf(record);
  if (!replaced || record.profile.generation <= oldest) return rest;
  const needed = keptAt(replaced, oldest);
  return { ...rest, ...(needed ? { replaced: needed } : {}) };
}

/** Returns the newest record, among this one and those it replaced, that was applied in this version or before it. */
function keptAt(record: KeptRecord, generation: number): KeptRecord | undefined {
  for (let one: KeptRecord | undefined = record; one; one = one.replaced) {
    const { replaced: _, applying: __, ...alone } = one;
    if (one.profile.generation <= generation) return alone;
  }
  return undefined;
}

/**
 * Updates the kept profiles after a write. An apply that the last service had only announced gets its version. An automatic rollback of an apply puts
 * back the profile that this apply replaced, as of the rollback, so that it is in force. Idempotent. Returns the names of the profiles put back.
 */
export function follow(watched: Watched[], by: Author, generation: number): string[] {
  const back: string[] = [];
  for (const [index, one] of watched.entries()) {
    const { profile, replaced, applying } = one;
    if (applying && by.how === 'apply' && by.profile === profile.name && generation > profile.generation) {
      one.profile = { ...profile, generation };
      delete one.applying;
    }
    if (!replaced || by.how !== 'return' || by.to === undefined || !undoes({ by, generation }, profile)) continue;
    const earlier = keptAt(replaced, by.to);
    if (!earlier) continue;
    // Another profile may manage fields that this one had left free.
    const isShared = watched.some(
      (other) => other !== one && commonFields(other.profile.request, earlier.profile.request).length > 0,
    );
    if (isShared) continue;
    watched[index] = { ...earlier, profile: { ...earlier.profile, generation }, drift: [] };
    back.push(profile.name);
  }
  return back;
}
