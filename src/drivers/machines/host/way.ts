import { mkdir, rmdir } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { systemCode } from '../../../storage/io-error.ts';

/** Makes the directories that are missing above a file (0700). Returns the topmost of them, if any was. */
export function makeWay(path: string): Promise<string | undefined> {
  return mkdir(dirname(path), { recursive: true, mode: 0o700 });
}

/** Takes the directories above a file away, the lowest first and `top` last, until one is not empty. True when `top` is gone. */
export async function removeWay(path: string, top: string): Promise<boolean> {
  for (let at = dirname(path); at === top || at.startsWith(top + sep); at = dirname(at)) {
    try {
      await rmdir(at);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') return false;
    }
  }
  return true;
}
