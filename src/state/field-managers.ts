import { isObject, type JsonObject } from '../json.ts';
import type { HistoryEntry, RecordedChange } from '../plan/history.ts';

/** The last writer of a field: a setting, map entry, option of the machine, power state or port forward. */
export interface FieldManager extends ManagedField, Pick<HistoryEntry, 'by'> {
  generation: number;
  /** RFC 3339. */
  at: string;
}

/** `after`: the value that was set; absent if an entry of a map was removed. */
type ManagedField = Pick<RecordedChange, 'path' | 'key' | 'after' | 'source'>;

/** Bytes of the line with the managers of dropped entries; the oldest go first. */
const MOST_BYTES = 1024 * 1024;

/**
 * Returns the manager of every field that was set, in the order of the writes. The history is bounded, so `before` are the managers at the time of
 * the first entry. Entries that never took effect do not count, and a factory reset leaves no field managed. Pure.
 */
export function managersOf(entries: readonly HistoryEntry[], before: readonly FieldManager[] = []): FieldManager[] {
  const managers = new Map(before.map((manager) => [fieldName(manager), manager]));
  for (const { generation, at, by, changes, outcome } of entries) {
    if (outcome?.result === 'not applied') continue;
    if (by.how === 'factory reset') managers.clear();
    for (const { before: _, ...field } of changes) {
      // A start or stop of the desktop manages no field.
      if (field.path === 'service') continue;
      // A field that is set again becomes the last one.
      managers.delete(fieldName(field));
      managers.set(fieldName(field), { ...field, by, generation, at });
    }
  }
  return [...managers.values()];
}

/** Returns a unique name of a field. */
export function fieldName({ path, key }: Pick<RecordedChange, 'path' | 'key'>): string {
  return JSON.stringify(key === undefined ? [path] : [path, key]);
}

/** The members of one line: the fields that each write manages. */
interface ManagedFields extends Pick<HistoryEntry, 'generation' | 'at' | 'by'> {
  fields: ManagedField[];
}

export function isRemoved({ key, after }: ManagedField): boolean {
  return key !== undefined && after === undefined;
}

/** Returns a line for the managers of entries that are dropped; empty without any. Entries of removed maps are no longer managed. */
export function managersLine(managers: readonly FieldManager[]): string {
  const writes = new Map<number, ManagedFields>();
  for (const { generation, at, by, ...field } of managers) {
    if (isRemoved(field)) continue;
    const write = writes.get(generation) ?? { generation, at, by, fields: [] };
    write.fields.push(field);
    writes.set(generation, write);
  }
  const kept: ManagedFields[] = [];
  let bytes = 0;
  for (const write of [...writes.values()].toReversed()) {
    bytes += Buffer.byteLength(JSON.stringify(write));
    if (bytes > MOST_BYTES) break;
    kept.unshift(write);
  }
  return kept.length === 0 ? '' : `${JSON.stringify({ managers: kept })}\n`;
}

/** Parses the managers in a line made by `managersLine`, leaving out damaged ones. */
export function managersIn({ managers }: JsonObject): FieldManager[] {
  if (!Array.isArray(managers)) return [];
  return managers
    .filter(isManagedFields)
    .flatMap(({ generation, at, by, fields }) =>
      fields
        .filter((field) => isObject(field) && typeof field.path === 'string')
        .map((field) => ({ ...field, by, generation, at })),
    );
}

function isManagedFields(value: unknown): value is ManagedFields & JsonObject {
  if (!isObject(value) || !isObject(value.by) || !Array.isArray(value.fields)) return false;
  return typeof value.generation === 'number' && typeof value.at === 'string';
}
