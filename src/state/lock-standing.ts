// Synchronous: these files are tiny, and loading `fs/promises` takes a twentieth of a short command's time.
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseObject } from '../json.ts';
import { type PlaceStatus, placeStatus } from '../os/directory-identity.ts';
import { type Entry, parseEntry } from './lock-entry.ts';

/** Bytes: larger than any file of a lock. */
const LIMIT = 64 * 1024;

/**
 * What the files of a lock reveal about the directory: `copied` when all of them were written in another one that still exists, `moved`
 * when one was. Unreadable files are ignored.
 */
export function lockStanding(directory: string): PlaceStatus {
  const entries = namesIn(directory).map((name) => readable(directory, name));
  const statuses = entries.flatMap((entry) => (entry?.held ? [placeStatus(entry.at, directory)] : []));
  if (statuses.includes('moved')) return 'moved';
  return statuses.length > 0 && statuses.every((each) => each === 'copied') ? 'copied' : 'here';
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
}

function readable(directory: string, name: string): Entry | undefined {
  const path = join(directory, name);
  try {
    // Non-blocking: a pipe in its place would hang.
    const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    try {
      const facts = fstatSync(file);
      if (!facts.isFile() || facts.size > LIMIT) return undefined;
      return parseEntry(path, name, parseObject(readFileSync(file, 'utf8')) ?? 'damaged');
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}
