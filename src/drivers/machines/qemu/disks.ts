import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { RdError } from '../../../errors.ts';
import { isObject } from '../../../json.ts';
import type { RunOptions, RunResult } from '../../../process/run.ts';
import { fileOperations } from '../../../storage/atomic-file.ts';
import { isThere } from '../../../storage/presence.ts';
import { syncFile } from '../../../storage/sync-file.ts';
import type { DriverContext } from '../../driver.ts';
import type { QemuPlaces } from './places.ts';

/** Runs a program of the host. */
export type HostRun = (argv: readonly string[], options?: Omit<RunOptions, 'env' | 'cwd'>) => Promise<RunResult>;

export interface DiskParts {
  places: Pick<QemuPlaces, 'disk' | 'data'>;
  run: HostRun;
  log: DriverContext['log'];
  signal: AbortSignal;
}

/** Checking a large disk reads all of its tables. */
const CHECK_MS = 10 * 60_000;
/** Of a table that is lost qemu-img tells every entry. */
const MOST_FINDINGS = 20;
/** Of qcow2: "QFI", 0xfb, and the size from byte 24 on. */
const QCOW_MAGIC = 0x51_46_49_fb;
const HEADER_BYTES = 32;
const OTHER_IMAGE = ['it was made from another image'];

/**
 * Makes the data disk ready: it is grown to the size, and never shrunk. The machine is off.
 * @returns its size in bytes.
 * @throws RdError `ERR_DRIVER_TERMINAL` for one that is damaged: nothing is put in its place; `ERR_DRIVER_FAILED` for one in use.
 */
export async function ensureData(parts: DiskParts, bytes: number): Promise<number> {
  const { places, run, signal } = parts;
  if (!(await isThere(places.data))) {
    // Whole or not at all: half a disk would be taken for a damaged one.
    const draft = `${places.data}.new`;
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', draft, String(bytes)], { signal });
    // Also after a power failure: an empty file of that name would be a damaged disk for good.
    await syncFile(draft);
    await rename(draft, places.data);
    await fileOperations.syncDirectory(dirname(places.data));
    return bytes;
  }
  const damage = await damageOf(parts, places.data);
  if (damage) {
    throw new RdError('ERR_DRIVER_TERMINAL', `the data disk ${places.data} is damaged`, {
      details: damage,
      advice: `Restore a snapshot, or try \`qemu-img check -r all\` on a copy of it. Nothing was changed.`,
    });
  }
  const there = (await diskFacts(parts, places.data)).bytes;
  if (there >= bytes) return there;
  await run(['qemu-img', 'resize', '-q', '-f', 'qcow2', places.data, String(bytes)], { signal });
  return bytes;
}

/**
 * Makes the root disk ready that a guest of this image boots from: a layer over the image. One that is damaged, or of another image, is
 * made anew, because what people keep is on the data disk. The machine is off.
 * @param base the disk of the image.
 * @param ofImage whether the record says that the root disk that may be there was made from this image.
 */
export async function ensureRoot(parts: DiskParts, base: string, ofImage: boolean): Promise<void> {
  const { places, run, log, signal } = parts;
  if (await isThere(places.disk)) {
    let why = ofImage ? await damageOf(parts, places.disk) : OTHER_IMAGE;
    if (!why) {
      const { backing } = await diskFacts(parts, places.disk);
      // A start that was killed may have written down the image, and not have come to the disk.
      if (imageOf(backing) !== imageOf(base)) why = OTHER_IMAGE;
      // The home was moved; the image is the same, its digest says so.
      else if (backing !== base) {
        await run(['qemu-img', 'rebase', '-q', '-u', '-f', 'qcow2', '-b', base, '-F', 'qcow2', places.disk], {
          signal,
        });
      }
    }
    if (!why) return;
    log('warn', 'the root disk of the guest is made anew', { why: why.slice(0, 3).join('; ') });
    await rm(places.disk);
  }
  await run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', base, '-F', 'qcow2', places.disk], { signal });
}

/**
 * Size in bytes of the data disk, 0 when there is none, by its first bytes: every look asks for it, and a program would be too much.
 * Undefined for what is no disk of ours.
 */
export async function dataBytes(path: string): Promise<number | undefined> {
  try {
    const handle = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
      if (bytesRead < HEADER_BYTES || buffer.readUInt32BE(0) !== QCOW_MAGIC) return undefined;
      return Number(buffer.readBigUInt64BE(24));
    } finally {
      await handle.close();
    }
  } catch {
    return (await isThere(path)) ? undefined : 0;
  }
}

/** Name of the directory of an image in the store, which is its digest. */
function imageOf(disk: string | undefined): string | undefined {
  return disk === undefined ? undefined : basename(dirname(disk));
}

/** Size in bytes that the guest sees, and the file that it is a layer over. */
export async function diskFacts(
  { run, signal }: Pick<DiskParts, 'run' | 'signal'>,
  path: string,
): Promise<{ bytes: number; backing?: string }> {
  const { stdout } = await run(['qemu-img', 'info', '-U', '--output=json', path], { signal });
  const value: unknown = JSON.parse(stdout);
  if (isObject(value) && typeof value['virtual-size'] === 'number') {
    const backing = value['backing-filename'];
    return { bytes: value['virtual-size'], ...(typeof backing === 'string' ? { backing } : {}) };
  }
  throw new RdError('ERR_DRIVER_FAILED', `qemu-img did not tell the size of ${path}`);
}

/**
 * Looks at a copy of a disk that nothing uses.
 * @throws RdError `ERR_DRIVER_FAILED` with what qemu-img found.
 */
export async function checkDiskCopy(parts: Pick<DiskParts, 'run' | 'signal'>, path: string): Promise<void> {
  const damage = await damageOf(parts, path);
  if (!damage) return;
  throw new RdError('ERR_DRIVER_FAILED', 'the copy of the data disk is damaged', {
    details: damage,
    advice: 'Look at the data disk itself with `qemu-img check`, while the machine is off.',
  });
}

/** What qemu-img says of a damaged disk. Leaks (status 3) only waste space, as after a power failure. */
async function damageOf(
  { run, signal }: Pick<DiskParts, 'run' | 'signal'>,
  path: string,
): Promise<string[] | undefined> {
  const { exitCode, stdout, stderr } = await run(['qemu-img', 'check', '-q', '-f', 'qcow2', path], {
    signal,
    timeoutMs: CHECK_MS,
    accept: [0, 1, 2, 3],
  });
  if (exitCode === 0 || exitCode === 3) return undefined;
  // Not a word about the disk: somebody has it open.
  if (/^Is another process using the image|Failed to get .*lock/m.test(stderr)) {
    throw new RdError('ERR_DRIVER_FAILED', `${path} is in use by another program`, {
      details: stderr.split('\n').filter((line) => line !== ''),
      advice: `See \`fuser -v ${path}\` for the program, and end it: most likely a QEMU that was started by hand.`,
    });
  }
  const lines = [stdout, stderr].flatMap((text) => text.split('\n')).filter((line) => line !== '');
  if (lines.length > MOST_FINDINGS) {
    return [...lines.slice(0, MOST_FINDINGS), `and ${lines.length - MOST_FINDINGS} more lines of qemu-img`];
  }
  return lines.length > 0 ? lines : [`qemu-img check ended with status ${exitCode}`];
}
