import { statSync } from 'node:fs';
import { isObject } from '../json.ts';

/** A directory as a process knew it that wrote something there: its name then, and what it is whatever it is called. */
export interface Place {
  path: string;
  /** Device and inode. */
  id: string;
}

/**
 * What has become of a directory since a record in it was written. `here`: it is that directory, maybe under a second name. `copied`: that
 * directory is still where it was, and this is another one with a copy of the record. `moved`: the old name does not lead to it any more.
 */
export type Standing = 'here' | 'copied' | 'moved';

/** Undefined for one that is not there. */
export function placeOf(path: string): Place | undefined {
  const id = idOf(path);
  return id === undefined ? undefined : { path, id };
}

/** `recorded`: as a record in `directory` says; absent in records of older versions. */
export function standing(recorded: Place | undefined, directory: string): Standing {
  if (recorded === undefined || recorded.path === directory) return 'here';
  if (!isStill(recorded)) return 'moved';
  return idOf(directory) === recorded.id ? 'here' : 'copied';
}

export function parsePlace(value: unknown): Place | undefined {
  if (!isObject(value) || typeof value.path !== 'string' || typeof value.id !== 'string') return undefined;
  return { path: value.path, id: value.id };
}

/** Whether the name still leads to the directory that it led to. */
export function isStill({ path, id }: Place): boolean {
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
