import { lstat } from 'node:fs/promises';
import { systemCode } from './io-error.ts';

/** Whether the path exists, without following links. An unreadable path counts as existing: the caller's next access reports the reason. */
export async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR',
  );
}
