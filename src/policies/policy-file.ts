import { lstat } from 'node:fs/promises';
import { PROFILE_LIMIT } from '../../profiles/formats/format.ts';
import { RdError } from '../errors.ts';
import { tooLong } from '../settings/source-text.ts';
import { ioError, systemCode } from '../storage/io-error.ts';
import { exposureFix, exposureOf, exposureText, trustOfSystem, trustOfUser } from '../storage/ownership.ts';
import { openToRead } from '../storage/regular-file.ts';
import { shellQuoted } from '../storage/shell-quoted.ts';
import type { PolicyPlace } from './places.ts';
import { invalidPolicy } from './policy.ts';

/** Whose a profile is: root's where `system`, else of the user or root. */
export type PolicyOwner = Pick<PolicyPlace, 'own' | 'system'>;

/**
 * The bytes of a profile; `undefined` when there is no file. A link to a file is followed.
 * @throws RdError `ERR_PROFILE_INVALID` for what is there and cannot be read, or could be written by others: passing over it would
 *   lift a protection, and so would obeying what anybody may have put there.
 */
export async function readPolicyFile(path: string, owner: PolicyOwner): Promise<Buffer | undefined> {
  // Where others can write they can also have removed it. In the home of a user it protects from nobody but the user.
  if (!owner.own) refuseExposedPolicy(path, owner);
  try {
    const handle = await openToRead(path, { follow: true });
    try {
      const stat = await handle.stat();
      if (owner.own) refuseExposedPolicy(path, owner);
      if (stat.size > PROFILE_LIMIT) throw notReadable(path, `it ${tooLong(stat.size, PROFILE_LIMIT)}`);
      const bytes = await handle.readFile();
      // It may have grown since.
      if (bytes.length > PROFILE_LIMIT) throw notReadable(path, `it ${tooLong(bytes.length, PROFILE_LIMIT)}`);
      return bytes;
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (systemCode(cause) === 'EISDIR') throw notReadable(path, 'it is a directory');
    if (systemCode(cause) !== 'ENOENT') throw unreadable(path, cause);
    if (await isLink(path)) throw notReadable(path, 'it is a link to a file that is not there');
    return undefined;
  }
}

function unreadable(path: string, cause: unknown): RdError {
  // Something that is no file says so by itself.
  if (cause instanceof RdError)
    return cause.code === 'ERR_PROFILE_INVALID' ? cause : notReadable(path, 'it is not a file');
  const known = ioError('read the deployment profile', path, cause, 'ERR_PROFILE_INVALID');
  return invalidPolicy(known.message, [], cause);
}

function notReadable(path: string, reason: string): RdError {
  return invalidPolicy(`could not read the deployment profile ${path}: ${reason}`);
}

/** @throws RdError `ERR_PROFILE_INVALID` naming what others can write, with the command that ends that. */
function refuseExposedPolicy(path: string, { system }: PolicyOwner): void {
  const exposure = exposureOf(path, system ? trustOfSystem() : trustOfUser());
  if (!exposure) return;
  const fix = exposureFix(exposure) ?? `chown ${system ? 'root' : '"$(id -un)"'} ${shellQuoted(exposure.path)}`;
  throw invalidPolicy(`the deployment profile ${path} cannot be trusted: ${exposureText(exposure)}`, [
    `To correct that${system ? ', as root' : ''}: \`${fix}\`, after a look at what the profile says.`,
  ]);
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );
}
