import { readdirSync } from 'node:fs';
import { type PlaceStatus, placeStatus } from '../os/directory-identity.ts';
import { readableEntry } from './lock-entry.ts';

/**
 * Returns the status of a lock's directory according to the files in it: `moved` if any held entry says so, `copied` if all of them do. Unreadable
 * files are ignored.
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
