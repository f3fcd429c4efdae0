import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { placeOf } from '../../src/os/directory-identity.ts';
import { temporaryDirectory } from './temp-home.ts';

/** What a service of an earlier commit left behind when it was killed; see `test/homes/make.ts`. */
export interface EarlierHome {
  commit: string;
  /** What later commits store differently. */
  about: string;
  /** By path below a directory, which is `{root}` in texts; the home is in `home`. */
  files: Record<string, string>;
}

const FOLDER = resolve('test/homes');

export const EARLIER_HOMES: readonly EarlierHome[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')));

/** Unpacks a home as if its service had been killed a moment ago, on this computer. Returns its path. Must be called inside a test. */
export function unpack({ files }: EarlierHome): { root: string; home: string } {
  const root = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, name.includes('.lock/') ? killedNow(text, path) : text.replaceAll('{root}', root));
    chmodSync(path, 0o600);
  }
  return { root, home: join(root, 'home') };
}

function killedNow(text: string, path: string): string {
  const { at, ...entry } = JSON.parse(text);
  const place = at === undefined ? {} : { at: placeOf(dirname(path)) };
  return JSON.stringify({ ...entry, since: new Date().toISOString(), ...place });
}
