import { rm } from 'node:fs/promises';
import { RdError } from '../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../os/atomic-file.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { userHome } from '../../os/user-directories.ts';
import { fileBehind, isLink } from '../../state/linked-file.ts';
import { UNIT_MARK } from './unit-files.ts';

// Files of units: ours carry a mark; others are neither replaced nor removed.

export async function isOurs(path: string): Promise<boolean> {
  return ((await readIfThere(path, { follow: true })) ?? '').includes(UNIT_MARK);
}

/** Throws `ERR_IO` for a file that we did not write. */
export async function refuseForeign(path: string): Promise<void> {
  const there = await readIfThere(path, { follow: true });
  if (there !== undefined && !there.includes(UNIT_MARK)) throw foreignUnit(path);
}

export async function replaceOurs(path: string, text: string): Promise<void> {
  await refuseForeign(path);
  // A unit among a person's dotfiles stays a link.
  const file = (await isLink(path)) ? await fileBehind(path, { within: [userHome(process.env)] }) : path;
  await writeFileAtomic(file, text, { mode: 0o644 });
}

export async function removeOurs(path: string): Promise<void> {
  if (!(await isOurs(path))) return;
  await rm(path).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  });
}

export function foreignUnit(what: string): RdError {
  return new RdError('ERR_IO', `${what} exists, and rdctl did not create it; nothing was changed`, {
    advice: 'Review it, and remove it if it is not needed.',
  });
}
