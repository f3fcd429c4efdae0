import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { COMPLETE } from '../../src/features/snapshots/catalogue.ts';
import { MAC, macText, newKey, readKey, sealedFiles, writeKey } from '../../src/features/snapshots/key.ts';

/** Makes a snapshot that a test has changed one of its home again. */
export async function sealAgain(directory: string): Promise<void> {
  const key = await readKey(dirname(directory));
  if (key === undefined || key === 'damaged') throw new Error(`no key for ${directory}`);
  writeFileSync(join(directory, MAC), macText(key, await sealedFiles(directory, join(directory, COMPLETE))));
}

/** Makes the key of a home without a service. Returns its directory of snapshots. */
export async function withKey(root: string): Promise<string> {
  await writeKey(root, newKey([]));
  return root;
}
