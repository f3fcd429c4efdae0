import { existsSync } from 'node:fs';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { PRODUCT } from '../../../product.ts';
import { makeDirectory } from '../../../storage/directory.ts';
import { ioError } from '../../../storage/io-error.ts';
import type { QemuPlaces } from './places.ts';

/**
 * The directory of this user for what does not outlive a start of the host. Not from the environment: a service that starts at the
 * login and one that is started by hand have to mean the same.
 */
export function runtimeDirectory(uid: number, exists: (path: string) => boolean = existsSync): string {
  if (uid === 0) return join('/run', PRODUCT.name);
  const own = join('/run/user', String(uid));
  return exists(own) ? join(own, PRODUCT.name) : join(tmpdir(), `${PRODUCT.name}-${uid}`);
}

/**
 * Makes the directory of the sockets. Whoever can write there can be the guest, so it is ours alone.
 * @throws RdError `ERR_DRIVER_TERMINAL` when it belongs to another user, or others get in; `ERR_IO`.
 */
export async function makeRuntime({ run, runElsewhere }: Pick<QemuPlaces, 'run' | 'runElsewhere'>): Promise<void> {
  if (runElsewhere) {
    await makeDirectory(dirname(run));
    await refuseForeign(dirname(run));
  }
  await mkdir(run, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw ioError('create', run, cause);
  });
  await refuseForeign(run);
}

async function refuseForeign(path: string): Promise<void> {
  const facts = await lstat(path);
  const uid = process.getuid?.() ?? facts.uid;
  if (facts.isDirectory() && facts.uid === uid && (facts.mode & 0o022) === 0) return;
  throw new RdError('ERR_DRIVER_TERMINAL', `${path} is needed for sockets, and is not a directory of yours alone`, {
    advice: 'Look at it with `ls -ld`, and move it away.',
  });
}

export async function removeRuntime({ run }: Pick<QemuPlaces, 'run'>): Promise<void> {
  await rm(run, { recursive: true, force: true });
}
