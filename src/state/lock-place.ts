import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../json.ts';
import { type PlaceStatus, parsePlace, placeStatus } from '../os/place.ts';

/**
 * What the files of a lock reveal about the directory: `copied` when all of them were written in another one that still exists, `moved`
 * when one was. Synchronous, for short commands; unreadable files are ignored.
 */
export function lockStanding(directory: string): PlaceStatus {
  const found = placesIn(directory).map((at) => placeStatus(at, directory));
  if (found.includes('moved')) return 'moved';
  return found.length > 0 && found.every((each) => each === 'copied') ? 'copied' : 'here';
}

function placesIn(directory: string) {
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith('.json'));
    return names.flatMap((name) => {
      const value: unknown = JSON.parse(readFileSync(join(directory, name), 'utf8'));
      return isObject(value) && value.held === true ? [parsePlace(value.at)] : [];
    });
  } catch {
    return [];
  }
}
