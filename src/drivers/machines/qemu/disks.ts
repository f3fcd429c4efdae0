import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import type { GuestImage } from '../../../guest-images/image.ts';
import { isObject } from '../../../json.ts';
import type { RunOptions, RunResult } from '../../../process/run.ts';
import { isThere } from '../../../storage/presence.ts';
import type { QemuPlaces } from './places.ts';

/** Runs a program of the host. */
export type HostRun = (argv: readonly string[], options?: Omit<RunOptions, 'env' | 'cwd'>) => Promise<RunResult>;

/** Checking a large disk reads all of its tables. */
const CHECK_MS = 10 * 60_000;

/**
 * Makes the disks that are missing: the root disk as a layer over the image, and the data disk, empty. A data disk that is there is
 * grown to the size and never shrunk. The machine is off.
 * @throws RdError `ERR_DRIVER_TERMINAL` for a data disk that is damaged: nothing is put in its place.
 */
export async function ensureDisks(
  places: Pick<QemuPlaces, 'disk' | 'data'>,
  image: GuestImage,
  bytes: number,
  run: HostRun,
  signal: AbortSignal,
): Promise<void> {
  const base = join(image.directory, image.files.disk.name);
  if (!(await isThere(places.disk))) {
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', base, '-F', 'qcow2', places.disk], { signal });
  }
  if (!(await isThere(places.data))) {
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', places.data, String(bytes)], { signal });
    return;
  }
  await checkDisk(places.data, run, signal);
  if ((await virtualSize(places.data, run, signal)) < bytes) {
    await run(['qemu-img', 'resize', '-q', '-f', 'qcow2', places.data, String(bytes)], { signal });
  }
}

/** Size in bytes that the guest sees. */
export async function virtualSize(path: string, run: HostRun, signal: AbortSignal): Promise<number> {
  const { stdout } = await run(['qemu-img', 'info', '-U', '--output=json', path], { signal });
  const value: unknown = JSON.parse(stdout);
  const size = isObject(value) ? value['virtual-size'] : undefined;
  if (typeof size === 'number') return size;
  throw new RdError('ERR_DRIVER_FAILED', `qemu-img did not tell the size of ${path}`);
}

/** Leaks (status 3) only waste space, as after a power failure. */
async function checkDisk(path: string, run: HostRun, signal: AbortSignal): Promise<void> {
  const { exitCode, stdout, stderr } = await run(['qemu-img', 'check', '-q', '-f', 'qcow2', path], {
    signal,
    timeoutMs: CHECK_MS,
    accept: [0, 1, 2, 3],
  });
  if (exitCode === 0 || exitCode === 3) return;
  throw new RdError('ERR_DRIVER_TERMINAL', `the data disk ${path} is damaged`, {
    details: [stdout, stderr].flatMap((text) => text.split('\n')).filter((line) => line !== ''),
    advice: `Restore a snapshot, or try \`qemu-img check -r all ${path}\` on a copy of it. Nothing was changed.`,
  });
}
