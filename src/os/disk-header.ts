import { RdError } from '../errors.ts';
import { ioError, systemCode } from './io-error.ts';
import { openToRead, type ReadOptions } from './regular-file.ts';

/** The reason that other programs must not open a disk. */
export interface DiskProblem {
  /** As a clause. */
  why: string;
  /** The file is not, or no longer, a disk. False if it asks for a feature that no disk of ours has. */
  isDamage: boolean;
}

type LinkOptions = Pick<ReadOptions, 'follow'>;

/** "QFI" and 0xfb. */
const MAGIC = 0x51_46_49_fb;
/** Size of the header in version 2, and at least in version 3. */
const HEADER_2 = 72;
const HEADER_3 = 104;
/** Disks that qemu-img makes need less than 1 KiB. */
const MAX_HEADER = 64 * 1024;
/** In bytes: QEMU cannot open a larger one with clusters of the usual size. */
const MAX_VIRTUAL = 2n ** 51n;
/** Bits of the incompatible features. */
const CORRUPT = 1n << 1n;
const DATA_FILE = 1n << 2n;
/** Not closed properly, another compression, finer allocation: none leads out of the file. */
const HARMLESS = (1n << 0n) | (1n << 3n) | (1n << 4n);
/** Header extensions. */
const END = 0;
const BACKING_FORMAT = 0xe2_79_2a_ca;
const DATA_FILE_NAME = 0x44_41_54_41;

const ANOTHER_BASE = 'its header names a backing file';
const ANOTHER_DATA = 'its header names an external data file';

/**
 * Returns the reason, from its header, that no program may open this qcow2 disk, or undefined if it may. Programs such as QEMU open every file that a
 * header names, even for writing, so this check comes first. Does not block, and follows a link only with `follow`.
 * @throws RdError `ERR_IO` when it cannot be read.
 */
export async function diskProblem(path: string, options: LinkOptions = {}): Promise<DiskProblem | undefined> {
  const header = await readHeader(path, MAX_HEADER, options);
  return header === undefined ? { why: 'it is not a regular file', isDamage: false } : headerProblem(header);
}

/**
 * Returns the size in bytes that the header of a qcow2 disk states, or undefined for any other file.
 * @throws RdError `ERR_IO` when it cannot be read.
 */
export async function virtualBytes(path: string, options: LinkOptions = {}): Promise<number | undefined> {
  const header = await readHeader(path, HEADER_2, options);
  if (header === undefined || header.length < HEADER_2 || header.readUInt32BE(0) !== MAGIC) return undefined;
  return Number(header.readBigUInt64BE(24));
}

/** Returns the reason that no program may open a disk that begins with this header, or undefined. */
export function headerProblem(header: Buffer): DiskProblem | undefined {
  if (header.length < HEADER_2 || header.readUInt32BE(0) !== MAGIC) return damage('it is not a qcow2 disk');
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return foreign(`it has version ${version} of qcow2, and only 2 and 3 are known`);
  if (header.readBigUInt64BE(8) !== 0n || header.readUInt32BE(16) !== 0) return foreign(ANOTHER_BASE);
  const clusterBits = header.readUInt32BE(20);
  if (clusterBits < 9 || clusterBits > 21) return damage(`its clusters have 2^${clusterBits} bytes`);
  const bytes = header.readBigUInt64BE(24);
  if (bytes > MAX_VIRTUAL) return foreign(`its size of ${bytes} bytes is more than any program can use`);
  if (header.readUInt32BE(32) !== 0) return foreign('it is encrypted');
  if (version === 2) return extensionProblem(header, HEADER_2, 2 ** clusterBits);
  if (header.length < HEADER_3) return damage(CUT);
  return featureProblem(header.readBigUInt64BE(72)) ?? laterProblem(header, 2 ** clusterBits);
}

const CUT = 'it ends within its header';

function featureProblem(features: bigint): DiskProblem | undefined {
  if (features & DATA_FILE) return foreign(ANOTHER_DATA);
  if (features & CORRUPT) return damage('it is marked as corrupt');
  const unknown = features & ~HARMLESS;
  return unknown === 0n ? undefined : foreign(`it needs unknown features (0x${unknown.toString(16)})`);
}

/** Checks the fields after the fixed header, in version 3. */
function laterProblem(header: Buffer, clusterBytes: number): DiskProblem | undefined {
  const bytes = header.readUInt32BE(100);
  if (bytes < HEADER_3 || bytes > clusterBytes) return damage(`its header has ${bytes} bytes`);
  return extensionProblem(header, bytes, clusterBytes);
}

/** Checks the extensions, which follow the header in its cluster. */
function extensionProblem(header: Buffer, begin: number, end: number): DiskProblem | undefined {
  for (let at = begin; at < end; ) {
    if (at + 8 > header.length) {
      return header.length < MAX_HEADER ? damage(CUT) : foreign(`its header has more than ${MAX_HEADER} bytes`);
    }
    const kind = header.readUInt32BE(at);
    const bytes = header.readUInt32BE(at + 4);
    if (kind === END) return undefined;
    if (kind === BACKING_FORMAT) return foreign(ANOTHER_BASE);
    if (kind === DATA_FILE_NAME) return foreign(ANOTHER_DATA);
    at += 8 + Math.ceil(bytes / 8) * 8;
    if (at > end) return damage('its header is longer than its first cluster');
  }
  return undefined;
}

/** Reads the beginning of the file, or returns undefined if it is not a regular one. */
async function readHeader(path: string, bytes: number, options: LinkOptions): Promise<Buffer | undefined> {
  try {
    const handle = await openToRead(path, options);
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (cause instanceof RdError || ['EISDIR', 'ELOOP'].includes(systemCode(cause) ?? '')) return undefined;
    throw ioError('read', path, cause);
  }
}

function damage(why: string): DiskProblem {
  return { why, isDamage: true };
}

function foreign(why: string): DiskProblem {
  return { why, isDamage: false };
}
