import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Io } from './command.ts';
import { packageRoot } from './package-root.ts';

/**
 * Where editors find the schema of profiles, for the first line of one. Relative where the file lies below the package's directory
 * or beside it, so that a checkout can be moved.
 */
export function schemaAddress(io: Io, path: string | undefined): string {
  const root = packageRoot(io);
  if (root === undefined) return 'schemas/profile.json';
  const schema = join(root, 'schemas', 'profile.json');
  const way = path === undefined ? schema : relative(dirname(path), schema);
  return isAbsolute(way) || way.startsWith('../..') ? schema : way;
}
