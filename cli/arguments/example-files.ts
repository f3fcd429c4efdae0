import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Io } from '../command.ts';
import { packageRoot } from './files.ts';

/** Names an example and nothing else that people have: `moby`, `examples/moby.yaml`. */
const NAMED = /^(?:examples\/)?([a-z][a-z-]*)$|^examples\/([a-z][a-z-]*)\.yaml$/;
/** May be meant as a file of their own: `moby.yaml`. */
const PERHAPS = /^([a-z][a-z-]*)\.ya?ml$/;

/** The example that came with this program, if there is no such file here and the name can mean nothing else. */
export function exampleNamed(name: string, io: Pick<Io, 'cwd' | 'self'>): string | undefined {
  const [, bare, path] = NAMED.exec(name) ?? [];
  return existsSync(resolve(io.cwd, name)) ? undefined : exampleFile(bare ?? path, io);
}

/** How to ask for the example that a name may mean: `examples/moby.yaml`. */
export function exampleOffered(name: string, io: Pick<Io, 'self'>): string | undefined {
  const [, bare] = PERHAPS.exec(basename(name)) ?? [];
  return exampleFile(bare, io) === undefined ? undefined : `examples/${bare}.yaml`;
}

function exampleFile(name: string | undefined, io: Pick<Io, 'self'>): string | undefined {
  if (name === undefined) return undefined;
  return directories(io)
    .map((directory) => join(directory, `${name}.yaml`))
    .find((file) => existsSync(file));
}

/** Of a clone or a package for npm, and of a Debian package, beside whose `bin` its documents are. */
function directories(io: Pick<Io, 'self'>): string[] {
  const root = packageRoot(io);
  if (root !== undefined) return [join(root, 'examples')];
  const [program = ''] = io.self;
  if (!existsSync(program)) return [];
  return [resolve(dirname(realpathSync(program)), '../share/doc/rdctl/examples')];
}
