import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../storage/atomic-file.ts';
import { isThere } from '../../../storage/presence.ts';
import type { HostRun } from './disks.ts';
import type { QemuPlaces } from './places.ts';

/** Whether the two halves are there and belong together: what is cut off or mixed up would keep us out of every guest. */
async function isPair(path: string, run: HostRun, signal: AbortSignal): Promise<boolean> {
  const other = await readIfThere(`${path}.pub`);
  if (other === undefined || !(await isThere(path))) return false;
  const { exitCode, stdout } = await run(['ssh-keygen', '-y', '-P', '', '-f', path], { accept: [0, 1, 255], signal });
  const [made, known] = [stdout, other].map((text) => text.trim().split(' ').slice(0, 2).join(' '));
  return exitCode === 0 && made === known;
}

async function ensurePair(path: string, id: string, run: HostRun, signal: AbortSignal): Promise<void> {
  if (await isPair(path, run, signal)) return;
  await Promise.all([path, `${path}.pub`].map((file) => rm(file, { force: true })));
  await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', `rdctl-${id}`, '-f', path], { signal });
  await chmod(path, 0o600);
}

/**
 * The two pairs of keys of a machine, made once, and anew when they are of no use: the one that logs in, and the one that the guest
 * shows. The guest gets both from QEMU at every boot, so that its first connection is as certain as any later one.
 */
export async function ensureKeys(places: QemuPlaces, port: number, run: HostRun, signal: AbortSignal): Promise<void> {
  await Promise.all([places.key, places.hostKey].map((path) => ensurePair(path, places.id, run, signal)));
  const [type, key] = (await readFile(`${places.hostKey}.pub`, 'utf8')).split(' ');
  if (type === undefined || key === undefined) {
    throw new RdError('ERR_DRIVER_FAILED', `${places.hostKey}.pub is no key`, {
      advice: `Remove ${places.hostKey} and ${places.hostKey}.pub; new ones are made at the next start.`,
    });
  }
  await writeFileAtomic(places.knownHosts, `[127.0.0.1]:${port} ${type} ${key.trim()}\n`);
  await writeFile(places.hostname, `rdctl-${places.id}`);
}
