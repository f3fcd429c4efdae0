import { hasShape, isObject, type JsonObject, type JsonValue } from '../json.ts';
import { setAside } from '../os/atomic-file.ts';
import { readRecord, writeRecord } from '../os/record.ts';
import type { FieldMemory } from '../plan/healing.ts';
import type { KeptProfile } from '../plan/kept.ts';

/** A kept profile, and the state remembered of its fields. */
export interface KeptRecord {
  profile: KeptProfile;
  fields: Record<string, FieldMemory>;
  /** The record that its last apply replaced, for as long as that may be undone. */
  replaced?: KeptRecord;
  /** The record was saved before its apply was written, and not again since. */
  applying?: true;
}

const FORMAT = 1;

/**
 * Loads the kept profiles of a home. A file with anything else is set aside, so that the next save loses nothing; `notice` reports that.
 * @throws RdError `ERR_IO` when it cannot be read.
 */
export async function loadKept(path: string, now: () => number): Promise<{ records: KeptRecord[]; notice?: string }> {
  const record = await readRecord(path);
  if (record === undefined) return { records: [] };
  const list = record !== 'damaged' && record.format === FORMAT && Array.isArray(record.kept) ? record.kept : undefined;
  const records = (list ?? []).filter(isKept);
  if (list !== undefined && records.length === list.length) return { records };
  const movedTo = await setAside(path, now());
  const still = records.length === 0 ? 'none is kept any more' : `${records.map(nameOf).join(', ')} could be read`;
  const notice = `The file of the kept profiles has a mistake; ${still}, and it was set aside as ${movedTo}. Apply with --keep again what should be kept.`;
  return { records, notice };
}

/**
 * Saves the kept profiles, atomically and for the owner alone, because secrets are in them as values.
 * @throws RdError `ERR_IO`; the previous file is then in place.
 */
export async function saveKept(path: string, records: readonly KeptRecord[]): Promise<void> {
  await writeRecord(path, { format: FORMAT, kept: records });
}

/** Returns the kept profiles that can be read, for use when no service runs. Throws `ERR_IO`. */
export async function readKept(path: string): Promise<KeptRecord[]> {
  const record = await readRecord(path);
  const list = record !== undefined && record !== 'damaged' && Array.isArray(record.kept) ? record.kept : [];
  return list.filter(isKept);
}

function nameOf({ profile }: KeptRecord): string {
  return profile.name;
}

const SAMPLE = {
  name: '',
  request: { settings: {}, state: '', prune: [''] },
  watch: { heal: '', fields: {} },
  files: [{ path: '', sha256: '' }],
  places: {},
  appliedAt: '',
  generation: 0,
  pending: [''],
};

/**
 * True for a kept profile. It was written by this program, in a directory that only this user can write to; its request is checked before it is used.
 */
function isKept(value: JsonValue): value is JsonObject & KeptRecord {
  if (!isObject(value) || !hasShape(value.profile, SAMPLE) || !isObject(value.fields)) return false;
  if (value.replaced !== undefined && !isKept(value.replaced)) return false;
  return Object.values(value.fields).every((field) => hasShape(field, { since: 0, rounds: {} }));
}
