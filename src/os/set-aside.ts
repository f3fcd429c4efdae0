import { link, lstat, readdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ioError, systemCode } from './io-error.ts';

/**
 * Renames an unusable file to `<path>.corrupt-<time>` for inspection, never over another one.
 * @returns the new path.
 */
export async function setAside(path: string, now: number): Promise<string> {
  const target = await keepAside(path, now);
  await unlink(path).catch((cause: unknown) => {
    throw ioError('set aside', path, cause);
  });
  return target;
}

/** As `setAside`, but keeps the original name too until the file is replaced. Repeated failing starts add only one name. */
export async function keepAside(path: string, now: number): Promise<string> {
  const known = await otherName(path);
  if (known !== undefined) return known;
  const stamp = new Date(now).toISOString().replace(/[-:]/g, '').replace('.', '');
  for (let attempt = 0; ; attempt += 1) {
    const target = `${path}.corrupt-${stamp}${attempt === 0 ? '' : `-${attempt}`}`;
    try {
      // Unlike a rename, a link fails when the name is taken.
      await link(path, target);
      return target;
    } catch (cause) {
      if (systemCode(cause) !== 'EEXIST') throw ioError('set aside', path, cause);
    }
  }
}

/** The name that an earlier `keepAside` gave to this very file. */
async function otherName(path: string): Promise<string | undefined> {
  try {
    const { ino, dev, nlink } = await lstat(path);
    if (nlink < 2) return undefined;
    const directory = dirname(path);
    const prefix = `${basename(path)}.corrupt-`;
    for (const name of (await readdir(directory)).filter((each) => each.startsWith(prefix))) {
      const other = await lstat(join(directory, name));
      if (other.ino === ino && other.dev === dev) return join(directory, name);
    }
    return undefined;
  } catch (cause) {
    throw ioError('set aside', path, cause);
  }
}
