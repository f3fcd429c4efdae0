import { releaseIndex } from '../../src/settings/releases.ts';
import type { CheckCell } from './finding.ts';
import type { CheckInput } from './input.ts';

/** Where a file goes that not all releases look at (documentation of the application on deployment profiles). */
const PLACES = {
  managed: { platform: 'darwin', since: '1.20', words: 'where device management writes' },
  policies: { platform: 'win32', since: '1.9', words: 'below SOFTWARE\\Policies' },
} as const;
export type Place = keyof typeof PLACES;

/**
 * What a release that would start with the settings does not take all the same: it looks in another place than the one that the
 * file goes to, or it locks less. One sentence each; nothing about releases that refuse the file anyway.
 */
export function reachNotices({ label, goesTo, parts }: CheckInput, cells: readonly CheckCell[]): string[] {
  const starting = cells.filter(({ verdict }) => verdict !== 'rejected');
  const notices: string[] = [];
  const { platform, since, words } = goesTo ? PLACES[goesTo] : { platform: undefined, since: '', words: '' };
  const blind = starting.filter(
    (cell) => cell.platform === platform && releaseIndex(cell.release) < releaseIndex(since),
  );
  if (blind.length > 0) {
    notices.push(`${label}: releases before ${since} do not look ${words}, and take nothing from there.`);
  }
  if (starting.some((cell) => cell.release === '1.8' && !blind.includes(cell)) && parts.some(locksMore)) {
    notices.push(
      `${label}: release 1.8 locks containerEngine.allowedImages alone; what else is locked can be changed there.`,
    );
  }
  return notices;
}

function locksMore({ part, settings }: CheckInput['parts'][number]): boolean {
  if (part !== 'locked') return false;
  const { version: _, containerEngine = {}, ...others } = settings;
  return Object.keys(others).length > 0 || Object.keys(containerEngine ?? {}).some((name) => name !== 'allowedImages');
}
