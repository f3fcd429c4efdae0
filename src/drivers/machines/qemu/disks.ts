import { rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { RdError } from '../../../errors.ts';
import { isObject } from '../../../json.ts';
import { fileOperations } from '../../../os/atomic-file.ts';
import { diskProblem, virtualBytes } from '../../../os/disk-header.ts';
import { isThere } from '../../../os/regular-file.ts';
import type { DriverContext } from '../../driver.ts';
import { wholeDisk } from './arguments.ts';
import type { ConfinedRun } from './confine/access.ts';
import type { QemuPlaces } from './places.ts';

export interface DiskParts {
  places: Pick<QemuPlaces, 'disk' | 'data'>;
  /** Runs qemu-img, which reads disks that may come from elsewhere. */
  run: ConfinedRun;
  log: DriverContext['log'];
  signal: AbortSignal;
}

/** Checking a large disk reads all of its tables. */
const CHECK_MS = 10 * 60_000;
/** If a table is lost, qemu-img prints every entry. */
const MAX_FINDINGS = 20;
/** Follows links for the data disk: a user may have moved it to a larger file system. A restore puts no link there. */
const OF_THE_USER = { follow: true };
const OTHER_IMAGE = ['it was created from another image'];

/**
 * Ensures that the data disk exists and has the size; grows it, never shrinks it. The machine is off.
 * @returns its size in bytes.
 * @throws RdError `ERR_DRIVER_TERMINAL` for a damaged disk, which is never replaced, and for one that leads out of its file; `ERR_DRIVER_FAILED` for
 * one in use.
 */
export async function ensureData(parts: DiskParts, bytes: number): Promise<number> {
  const { places, run, signal } = parts;
  if (!(await isThere(places.data))) {
    // Atomic: a partial disk would be taken for a damaged one.
    const draft = `${places.data}.new`;
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', draft, String(bytes)], {
      access: { writes: [draft] },
      signal,
    });
    // Sync before the rename: an empty file after a power failure would be a permanently damaged disk.
    await fileOperations.syncFile(draft);
    await rename(draft, places.data);
    await fileOperations.syncDirectory(dirname(places.data));
    return bytes;
  }
  const damage = await dataDamage(parts, places.data, OF_THE_USER);
  if (damage) {
    throw new RdError('ERR_DRIVER_TERMINAL', `the data disk ${places.data} is damaged`, {
      details: damage,
      advice: `Restore a snapshot, or try \`qemu-img check -r all\` on a copy of it. Nothing was changed.`,
    });
  }
  const currentBytes = (await diskFacts(parts, places.data)).bytes;
  if (currentBytes >= bytes) return currentBytes;
  await run(['qemu-img', 'resize', '-q', '-f', 'qcow2', wholeDisk([places.data]), String(bytes)], {
    access: { writes: [places.data] },
    signal,
  });
  return bytes;
}

/**
 * Ensures the root disk that a guest of this image boots from: a layer over the image. Recreates one that is damaged or belongs to another image,
 * because user data is on the data disk. The machine is off.
 * @param base the disk of the image, which has been verified.
 * @param isFromImage true if the record says that an existing root disk was made from this image.
 */
export async function ensureRoot(parts: DiskParts, base: string, isFromImage: boolean): Promise<void> {
  const { places, run, log, signal } = parts;
  if (await isThere(places.disk)) {
    let why = isFromImage ? await damageOf(parts, [places.disk, base]) : OTHER_IMAGE;
    if (!why) {
      const { backing } = await diskFacts(parts, places.disk);
      // A killed start may have recorded the image without creating the disk.
      if (imageOf(backing) !== imageOf(base)) why = OTHER_IMAGE;
      // The home was moved; the digest proves that the image is the same.
      else if (backing !== base) {
        await run(['qemu-img', 'rebase', '-q', '-u', '-f', 'qcow2', '-b', base, '-F', 'qcow2', places.disk], {
          access: { reads: [base], writes: [places.disk] },
          signal,
        });
      }
    }
    if (!why) return;
    log('warn', 'recreating the root disk of the guest', { why: why.slice(0, 3).join('; ') });
    await rm(places.disk);
  }
  await run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', base, '-F', 'qcow2', places.disk], {
    access: { reads: [base], writes: [places.disk] },
    signal,
  });
}

/**
 * Returns the size in bytes of the data disk from its header, 0 when there is none: every observation needs it, and running qemu-img would cost too
 * much. Undefined for a file that is not our disk.
 */
export async function dataBytes(path: string): Promise<number | undefined> {
  return virtualBytes(path, OF_THE_USER).catch(async () => ((await isThere(path)) ? undefined : 0));
}

/** Returns the directory name of an image in the store, which is its digest. */
function imageOf(disk: string | undefined): string | undefined {
  return disk === undefined ? undefined : basename(dirname(disk));
}

/** Returns the virtual size in bytes, and the backing file. */
export async function diskFacts(
  { run, signal }: Pick<DiskParts, 'run' | 'signal'>,
  path: string,
): Promise<{ bytes: number; backing?: string }> {
  const { stdout } = await run(['qemu-img', 'info', '-U', '-f', 'qcow2', '--output=json', path], {
    access: { reads: [path] },
    signal,
  });
  const value: unknown = JSON.parse(stdout);
  if (isObject(value) && typeof value['virtual-size'] === 'number') {
    const backing = value['backing-filename'];
    return { bytes: value['virtual-size'], ...(typeof backing === 'string' ? { backing } : {}) };
  }
  throw new RdError('ERR_DRIVER_FAILED', `qemu-img did not report the size of ${path}`);
}

/**
 * Checks a copy of an unused disk.
 * @throws RdError `ERR_DRIVER_FAILED` with qemu-img's findings, `ERR_DRIVER_TERMINAL` for one that leads out of its file.
 */
export async function checkDiskCopy(parts: Pick<DiskParts, 'run' | 'signal'>, path: string): Promise<void> {
  const damage = await dataDamage(parts, path, {});
  if (!damage) return;
  throw new RdError('ERR_DRIVER_FAILED', 'the copy of the data disk is damaged', {
    details: damage,
    advice: 'Check the data disk itself with `qemu-img check` while the machine is off.',
  });
}

/** Returns the damage of a data disk, which may come from elsewhere: no program opens one that leads out of its file. */
async function dataDamage(
  parts: Pick<DiskParts, 'run' | 'signal'>,
  path: string,
  options: { follow?: boolean },
): Promise<string[] | undefined> {
  const problem = await diskProblem(path, options);
  if (!problem) return damageOf(parts, [path]);
  if (problem.isDamage) return [problem.why];
  throw new RdError('ERR_DRIVER_TERMINAL', `the data disk ${path} was not made by rdctl: ${problem.why}`, {
    advice: 'No program has opened it, and nothing was changed. Restore a snapshot of your own.',
  });
}

/** Returns qemu-img's report of damage to the first of these files, topmost first. Leaks (status 3) only waste space, as after a power failure. */
async function damageOf(
  { run, signal }: Pick<DiskParts, 'run' | 'signal'>,
  files: readonly string[],
): Promise<string[] | undefined> {
  const { exitCode, stdout, stderr } = await run(['qemu-img', 'check', '-q', '-f', 'qcow2', wholeDisk(files)], {
    access: { reads: files },
    signal,
    timeoutMs: CHECK_MS,
    accept: [0, 1, 2, 3],
  });
  if (exitCode === 0 || exitCode === 3) return undefined;
  // Not damage: the disk is in use.
  if (/^Is another process using the image|Failed to get .*lock/m.test(stderr)) {
    const [path] = files;
    throw new RdError('ERR_DRIVER_FAILED', `${path} is in use by another program`, {
      details: stderr.split('\n').filter((line) => line !== ''),
      advice: `See \`fuser -v ${path}\` for the program, and stop it: most likely a QEMU that was started by hand.`,
    });
  }
  const lines = [stdout, stderr].flatMap((text) => text.split('\n')).filter((line) => line !== '');
  if (lines.length > MAX_FINDINGS) {
    return [...lines.slice(0, MAX_FINDINGS), `and ${lines.length - MAX_FINDINGS} more lines from qemu-img`];
  }
  return lines.length > 0 ? lines : [`qemu-img check exited with status ${exitCode}`];
}
