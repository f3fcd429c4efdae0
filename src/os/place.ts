import { statSync } from 'node:fs';
import { isObject } from '../json.ts';

/** A directory that a process wrote to: its path then, and its identity. */
export interface Place {
  path: string;
  /** Device and inode. */
  id: string;
}

/**
 * What happened to a directory since a record in it was written. `here`: the same directory, maybe under another path. `copied`: the
 * original still exists, and this one has a copy of the record. `moved`: the old path no longer leads to it.
 */
export type PlaceStatus = 'here' | 'copied' | 'moved';

/** Undefined for a missing one. */
export function placeOf(path: string): Place | undefined {
  const id = idOf(path);
  return id === undefined ? undefined : { path, id };
}

/** `recorded`: from a record in `directory`; absent in records of older versions. */
export function placeStatus(recorded: Place | undefined, directory: string): PlaceStatus {
  if (recorded === undefined || recorded.path === directory) return 'here';
  if (!isSameDirectory(recorded)) return 'moved';
  return idOf(directory) === recorded.id ? 'here' : 'copied';
}

export function parsePlace(value: unknown): Place | undefined {
  if (!isObject(value) || typeof value.path !== 'string' || typeof value.id !== 'string') return undefined;
  return { path: value.path, id: value.id };
}

/** Whether the path still leads to the same directory. */
export function isSameDirectory({ path, id }: Place): boolean {
  return idOf(path) === id;
}

function idOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
