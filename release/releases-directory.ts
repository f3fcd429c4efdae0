import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';

/**
 * Puts a release where `rdctl upgrade` finds it: all its files in `DIR/VERSION`, and its version in `DIR/latest` unless that is higher already,
 * or this is a prerelease. Each appears complete or not at all.
 * @returns what was done, as a sentence.
 * @throws Error when the directory has that version: a release never changes.
 */
export function publish(from: string, releases: string, version: string): string {
  const place = join(releases, version);
  if (existsSync(place)) throw new Error(`${place} is there already, and a release never changes`);
  mkdirSync(releases, { recursive: true });
  const draft = mkdtempSync(join(releases, '.new-'));
  cpSync(from, join(draft, version), { recursive: true });
  renameSync(join(draft, version), place);
  const latest = join(releases, 'latest');
  const before = existsSync(latest) ? readFileSync(latest, 'utf8').trim() : undefined;
  const isLatest = semver.prerelease(version) === null && (before === undefined || semver.gt(version, before));
  if (isLatest) {
    writeFileSync(join(draft, 'latest'), `${version}\n`);
    renameSync(join(draft, 'latest'), latest);
  }
  rmdirSync(draft);
  return `${place}: published${isLatest ? ' as the latest' : `; the latest stays ${before ?? 'unset'}`}`;
}
