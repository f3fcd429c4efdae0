import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { FileOperations } from '../../os/atomic-file.ts';
import { readRecord, writeRecord } from '../../os/record.ts';
import { readRegular, readText } from '../../os/regular-file.ts';
import { snapshotKeyOf } from '../../state/places.ts';

/** The file with a snapshot's name and date, and the file with its MAC. */
export const METADATA = 'metadata.json';
export const MAC = 'rdctl-mac.txt';
const MAC_TEXT = 'Made in the home with the key of this MAC. HMAC-SHA256:';
/** Maximum bytes of the files that a MAC covers, and of the key with the names of old snapshots. */
const MAX_BYTES = 1024 * 1024;
const KEY_BYTES = 32;

/** The key of a home, which proves that a snapshot was made in it. It is stored beside the snapshots and in none of them. */
export interface SnapshotKey {
  secret: Buffer;
  /** Ids of snapshots of earlier releases, which have no MAC yet and get one now. */
  adopting: readonly string[];
}

/** The small files of a snapshot, which authenticate all of it: the mark has the digest of the manifest, the manifest those of every file. */
interface Sealed {
  metadata: Uint8Array | string;
  mark: Uint8Array | string;
}

/** Reads the files of a snapshot that its MAC covers. `mark` is the path of its mark. Throws when one cannot be read. */
export async function sealedFiles(directory: string, mark: string): Promise<Sealed> {
  const read = (path: string) => readRegular(path, { limit: MAX_BYTES });
  return { metadata: await read(join(directory, METADATA)), mark: await read(mark) };
}

/** Reads the key. Throws for a key of a newer release. @returns undefined without a key, `damaged` for a file that holds none. */
export async function readKey(root: string): Promise<SnapshotKey | 'damaged' | undefined> {
  const record = await readRecord(snapshotKeyOf(root), { limit: MAX_BYTES });
  if (record === undefined || record === 'damaged') return record;
  const { key, adopting = [] } = record;
  if (typeof key !== 'string' || !/^[0-9a-f]{64}$/.test(key) || !Array.isArray(adopting)) return 'damaged';
  return { secret: Buffer.from(key, 'hex'), adopting: adopting.filter((id) => typeof id === 'string') };
}

/** Creates a key from the system's random generator. */
export function newKey(adopting: readonly string[]): SnapshotKey {
  return { secret: randomBytes(KEY_BYTES), adopting };
}

/** Replaces the key as a whole, for the user alone. @throws RdError `ERR_IO`. */
export async function writeKey(
  root: string,
  { secret, adopting }: SnapshotKey,
  operations?: FileOperations,
): Promise<void> {
  const record = { format: 1, key: secret.toString('hex'), ...(adopting.length === 0 ? {} : { adopting }) };
  await writeRecord(snapshotKeyOf(root), record, { mode: 0o600, ...(operations ? { operations } : {}) });
}

/** Returns the text of a snapshot's MAC file. */
export function macText(key: SnapshotKey, sealed: Sealed): string {
  return `${MAC_TEXT}${macOf(key, sealed)}\n`;
}

/** Returns the text of the MAC file for a snapshot that is being made. @throws RdError `ERR_SNAPSHOT` without a key. */
export async function sealed(root: string, files: Sealed): Promise<string> {
  const key = await readKey(root);
  if (key !== undefined && key !== 'damaged') return macText(key, files);
  throw new RdError('ERR_SNAPSHOT', `the key of the snapshots, ${snapshotKeyOf(root)}, is ${key ?? 'missing'}`, {
    advice: 'Restart the service, which makes a new one: `rdctl shutdown`, then `rdctl start`.',
  });
}

/** Whether this home made the snapshot. `mark` is the path of its mark. False for one that cannot be read. */
export async function hasMac(key: SnapshotKey, directory: string, mark: string): Promise<boolean> {
  try {
    const is = /HMAC-SHA256:([0-9a-f]{64})\n$/.exec(await readText(join(directory, MAC), MAX_BYTES))?.[1];
    if (is === undefined) return false;
    const should = macOf(key, await sealedFiles(directory, mark));
    return timingSafeEqual(Buffer.from(is, 'hex'), Buffer.from(should, 'hex'));
  } catch {
    return false;
  }
}

function macOf({ secret }: SnapshotKey, { metadata, mark }: Sealed): string {
  const digest = (content: Uint8Array | string) => createHash('sha256').update(content).digest('hex');
  return createHmac('sha256', secret)
    .update(`rdctl snapshot 1\n${digest(metadata)}\n${digest(mark)}\n`)
    .digest('hex');
}
