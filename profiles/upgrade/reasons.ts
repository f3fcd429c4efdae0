import { isObject, type JsonValue } from '../../src/json.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { fieldAt } from '../../src/settings/fields.ts';

interface About {
  from: string;
  to?: string;
  before: JsonValue;
  after?: JsonValue;
  version: number;
  platform: Platform;
}

/** Why settings ended, by their last name (settings facts, 1.3 and 1.5). */
const ENDINGS: Readonly<Record<string, string>> = {
  rancherMode: 'ended with settings version 2',
  checkForExistingKimBuilder: 'ended with settings version 5',
  experimentalHostResolver: 'ended before settings version 5, and nothing took the value over',
  hostResolver: 'ended with settings version 14',
  socketVMNet: 'ended with settings version 12',
  networkingTunnel: 'ended with settings version 14',
  locked: 'ended with settings version 6: a locked deployment profile says what is locked',
  msizeInKB: 'became msizeInKib with settings version 8, and no release took the value over',
};

/** Why an upgrade does something, as a phrase for a person. */
export function reasonOf(about: About): string {
  const { from, to, version } = about;
  if (from === 'version') return `version ${version} becomes the newest one`;
  if (to === undefined) return ending(about);
  const changed = valueReason(about);
  if (from === to) return changed ?? 'is written differently today';
  const since = fieldAt(to)?.since;
  const moved = since === undefined ? 'moved' : `moved with settings version ${since}`;
  return changed === undefined ? moved : `${moved}; ${changed}`;
}

function ending({ from, before }: About): string {
  const known = ENDINGS[from.slice(from.lastIndexOf('.') + 1)];
  if (known !== undefined) return known;
  return isObject(before) && Object.keys(before).length === 0
    ? 'was an empty section that has ended'
    : 'is no setting of the newest version';
}

function valueReason({ from, to, before, after, version, platform }: About): string | undefined {
  if (typeof before === 'boolean' && before !== after) return 'it says the opposite since then';
  if (before === 'notset') {
    return `"notset" ended with settings version 8; on ${PLATFORM_NAMES[platform]} it meant ${String(after)}`;
  }
  if (Array.isArray(before) && Array.isArray(after) && JSON.stringify(before) !== JSON.stringify(after)) {
    return 'spaces around entries and empty entries are taken away since settings version 10';
  }
  if (to === 'application.extensions.installed' && from === 'extensions' && version <= 6) {
    return 'the tag of an extension is its value since settings version 7; one that was off is left out';
  }
  return undefined;
}
