import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../../../errors.ts';
import { makeDirectory } from '../../../os/directory.ts';
import { ioError } from '../../../os/io-error.ts';
import { isOwnDirectory } from '../../../os/user-directories.ts';
import type { QemuPlaces } from './places.ts';

/**
 * Creates the directory of the sockets. It is private, because write access there allows impersonating the guest.
 * @throws RdError `ERR_DRIVER_TERMINAL` when it belongs to another user or others have access; `ERR_IO`.
 */
export async function makeRuntime({ run, runElsewhere }: Pick<QemuPlaces, 'run' | 'runElsewhere'>): Promise<void> {
  if (runElsewhere) {
    await makeDirectory(dirname(run));
    refuseForeign(dirname(run));
  }
  await mkdir(run, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw ioError('create', run, cause);
  });
  refuseForeign(run);
}

function refuseForeign(path: string): void {
  if (isOwnDirectory(path)) return;
  throw new RdError('ERR_DRIVER_TERMINAL', `${path} is needed for sockets, and is not a directory of yours alone`, {
    advice: 'Look at it with `ls -ld`, and move it away.',
  });
}

export async function removeRuntime({ run }: Pick<QemuPlaces, 'run'>): Promise<void> {
  await rm(run, { recursive: true, force: true });
}
