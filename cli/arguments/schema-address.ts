import { existsSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Io } from '../command.ts';

/**
 * URL or path of the profile schema for editors, written to the first line of a new profile. Relative when the file is
 * in or beside the package directory, so that a checkout can be moved.
 */
export function schemaAddress(io: Io, path: string | undefined): string {
  const root = packageRoot(io);
  if (root === undefined) return 'schemas/profile.json';
  const schema = join(root, 'schemas', 'profile.json');
  const way = path === undefined ? schema : relative(dirname(path), schema);
  return isAbsolute(way) || way.startsWith('../..') ? schema : way;
}

/** The directory of this package, derived from the running program; absent when it runs outside of one. */
export function packageRoot({ self }: Io): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  for (let at = dirname(realpathSync(script)); ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json')) && existsSync(join(at, 'schemas', 'profile.json'))) return at;
    if (at === dirname(at)) return undefined;
  }
}
