import { lstat } from 'node:fs/promises';
import { systemCode } from './io-error.ts';

/** Whether there is anything of that name; a link counts itself. What cannot be looked at counts as there: who goes on hears why not. */
export async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR',
  );
}
