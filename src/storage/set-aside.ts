import { link, unlink } from 'node:fs/promises';
import { ioError, systemCode } from './io-error.ts';

/**
 * Moves a file that cannot be used to `<path>.corrupt-<time>`, never over another one, so that a person can look at it.
 * @returns the new path.
 */
export async function setAside(path: string, now: number): Promise<string> {
  const stamp = new Date(now).toISOString().replace(/[-:]/g, '').replace('.', '');
  for (let attempt = 0; ; attempt += 1) {
    const target = `${path}.corrupt-${stamp}${attempt === 0 ? '' : `-${attempt}`}`;
    try {
      // Unlike a rename, a link fails when the name is taken.
      await link(path, target);
      await unlink(path);
      return target;
    } catch (cause) {
      if (systemCode(cause) !== 'EEXIST') throw ioError('set aside', path, cause);
    }
  }
}
