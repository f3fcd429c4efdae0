import type { Dirent } from 'node:fs';
import { lstat, readdir, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ioError, systemCode } from '../os/io-error.ts';
import { isOwnConfig, isOwnData, isOwnState } from './own-files.ts';
import type { Places } from './places.ts';

/** The temporary names of `writeFileAtomic`. */
const DRAFT = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;
/** Milliseconds: no single write of ours takes that long. */
const STALE = 3_600_000;

interface DraftPlace {
  directory: string;
  /** Which files the drafts belong to. */
  of: (name: string) => boolean;
  /** Processes without the service lock write there: only drafts older than any write are removed. */
  shared?: true;
}

/**
 * Removes leftovers of killed atomic writes in the directories of an installation. Call it while holding the service lock. Removes regular
 * files with our draft names only; never follows links.
 * @returns what could not be removed, which is harmless.
 */
export async function sweepDrafts(here: Places, now: number): Promise<Error[]> {
  const failures: Error[] = [];
  for (const { directory, of, shared } of await draftPlaces(here)) {
    for (const name of (await entries(directory)).filter((each) => each.isFile()).map((each) => each.name)) {
      const target = DRAFT.exec(name)?.[1] ?? formerDraft(name);
      if (target === undefined || !of(target)) continue;
      const path = join(directory, name);
      try {
        if (shared && now - (await lstat(path)).mtimeMs < STALE) continue;
        await unlink(path);
      } catch (cause) {
        if (systemCode(cause) !== 'ENOENT') failures.push(ioError('remove', path, cause));
      }
    }
  }
  return failures;
}

/** The launcher record, whose copies are written beside it under one name. */
function formerDraft(name: string): string | undefined {
  return name === 'copy.json.new' ? 'copy.json' : undefined;
}

async function draftPlaces(here: Places): Promise<DraftPlace[]> {
  const any = () => true;
  const k3s = join(here.cache, 'k3s');
  const isMark = (name: string) => here.dropInMarker !== undefined && name === basename(here.dropInMarker);
  const isWayBack = (name: string) => name.startsWith('before-apply-') && isOwnState(name);
  return [
    { directory: here.state, of: (name) => isOwnState(name) && !isWayBack(name) },
    { directory: here.state, of: isWayBack, shared: true },
    { directory: here.config, of: isOwnConfig },
    { directory: here.data, of: isOwnData(here) },
    { directory: here.data, of: isMark, shared: true },
    { directory: here.bin, of: (name) => /^rdctl(?:\.cmd)?$/.test(name), shared: true },
    { directory: join(here.cache, 'downloads'), of: (name) => /^[0-9a-f]{64}\.json$/.test(name), shared: true },
    ...[k3s, ...(await directoriesIn(k3s))].map((directory) => ({ directory, of: any, shared: true as const })),
    ...(await driverDirectories(join(here.state, 'drivers'))).map((directory) => ({ directory, of: any })),
  ];
}

/** The directory of each driver, `run` in it and their direct children. Deeper levels belong to engines and containers. */
async function driverDirectories(drivers: string): Promise<string[]> {
  const found: string[] = [];
  for (const driver of await directoriesIn(drivers)) {
    found.push(driver, join(driver, 'run'), ...(await directoriesIn(join(driver, 'run'))));
  }
  return found;
}

async function directoriesIn(directory: string): Promise<string[]> {
  return (await entries(directory)).filter((each) => each.isDirectory()).map(({ name }) => join(directory, name));
}

/** Unreadable directories and targets of links have nothing to remove. */
async function entries(directory: string): Promise<Dirent[]> {
  const isOurs = await lstat(directory).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
  return isOurs ? readdir(directory, { withFileTypes: true }).catch(() => []) : [];
}
