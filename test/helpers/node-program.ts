import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Node, for stand-ins of other programs: what runs this test, or when that is the runtime of the standalone file, the one on the PATH. */
export const NODE = process.versions.bun === undefined ? process.execPath : onPath('node');

function onPath(program: string): string {
  const places = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, program));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Error(`${program} is not on the PATH`);
  return found;
}
