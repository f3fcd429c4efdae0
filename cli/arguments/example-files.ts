import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { nearest } from '../../src/settings/nearest.ts';
import type { Io } from '../command.ts';
import { packageRoot } from './files.ts';

/** Matches names that can only mean an example: `moby`, `examples/moby.yaml`. */
const NAMED = /^(?:examples\/)?([a-z][a-z-]*)$|^examples\/([a-z][a-z-]*)\.yaml$/;
/** Matches names that may mean a file of the user as well: `moby.yaml`. */
const PERHAPS = /^([a-z][a-z-]*)\.ya?ml$/;

/** Returns the example that came with this program if there is no such file here and the name can only mean an example. */
export function exampleNamed(name: string, io: Pick<Io, 'cwd' | 'self'>): string | undefined {
  const [, bare, path] = NAMED.exec(name) ?? [];
  return existsSync(resolve(io.cwd, name)) ? undefined : exampleFile(bare ?? path, io);
}

/** Returns the name by which to request the example that a name may mean: `examples/moby.yaml`. */
export function exampleOffered(name: string, io: Pick<Io, 'self'>): string | undefined {
  const [, bare] = PERHAPS.exec(basename(name)) ?? [];
  return exampleFile(bare, io) === undefined ? undefined : `examples/${bare}.yaml`;
}

/** Returns the example, or the file beside a missing one, whose name without the extension is closest. */
export function closestTo(name: string, io: Pick<Io, 'cwd' | 'self'>): string | undefined {
  const directory = dirname(name);
  const stem = stemOf(basename(name));
  const files = namesIn(resolve(io.cwd, directory)).filter((each) => EXTENSION.test(each));
  const close = nearest(stem, files.map(stemOf));
  const file = files.find((each) => stemOf(each) === close);
  if (file !== undefined) return directory === '.' ? file : join(directory, file);
  const examples = directories(io).flatMap(namesIn);
  const example = nearest(stem, examples.filter((each) => each.endsWith('.yaml')).map(stemOf));
  return example && `examples/${example}.yaml`;
}

const EXTENSION = /\.(?:ya?ml|json|plan)$/;

function stemOf(file: string): string {
  return file.replace(EXTENSION, '');
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function exampleFile(name: string | undefined, io: Pick<Io, 'self'>): string | undefined {
  if (name === undefined) return undefined;
  return directories(io)
    .map((directory) => join(directory, `${name}.yaml`))
    .find((file) => existsSync(file));
}

/** Returns the directories of examples: that of a clone or an npm package, and that of a Debian package, whose documents are beside its `bin`. */
function directories(io: Pick<Io, 'self'>): string[] {
  const root = packageRoot(io);
  if (root !== undefined) return [join(root, 'examples')];
  const [program = ''] = io.self;
  if (!existsSync(program)) return [];
  return [resolve(dirname(realpathSync(program)), '../share/doc/rdctl/examples')];
}
