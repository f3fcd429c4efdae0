import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { writeFileAtomic } from '../../../storage/atomic-file.ts';
import { isThere } from '../../../storage/presence.ts';
import type { HostRun } from './disks.ts';
import type { QemuPlaces } from './places.ts';

/**
 * The two pairs of keys of a machine, made once: the one that logs in, and the one that the guest shows. The guest gets both from
 * QEMU at every boot, so that its first connection is as certain as any later one.
 */
export async function ensureKeys(places: QemuPlaces, port: number, run: HostRun, signal: AbortSignal): Promise<void> {
  for (const path of [places.key, places.hostKey]) {
    if ((await isThere(path)) && (await isThere(`${path}.pub`))) continue;
    await Promise.all([path, `${path}.pub`].map((file) => rm(file, { force: true })));
    await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', `rdctl-${places.id}`, '-f', path], { signal });
    await chmod(path, 0o600);
  }
  const [type, key] = (await readFile(`${places.hostKey}.pub`, 'utf8')).split(' ');
  if (type === undefined || key === undefined) {
    throw new RdError('ERR_DRIVER_FAILED', `${places.hostKey}.pub is no key`, {
      advice: `Remove ${places.hostKey} and ${places.hostKey}.pub; new ones are made at the next start.`,
    });
  }
  await writeFileAtomic(places.knownHosts, `[127.0.0.1]:${port} ${type} ${key.trim()}\n`);
  await writeFile(places.hostname, `rdctl-${places.id}`);
}
