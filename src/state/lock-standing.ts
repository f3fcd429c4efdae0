import { readdirSync } from 'node:fs';
import { type PlaceStatus, placeStatus } from '../os/directory-identity.ts';
import { readableEntry } from './lock-entry.ts';

/**
 * What the files of a lock reveal about the directory: `copied` when all of them were written in another one that still exists, `moved`
 * when one was. Unreadable files are ignored.
 */
export function lockStanding(directory: string): PlaceStatus {
  const entries = namesIn(directory).map((name) => readableEntry(directory, name));
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
