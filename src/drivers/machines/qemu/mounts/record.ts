import { defined, isObject, type JsonObject, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import type { MachineSpec } from '../../../driver.ts';
import type { Share, ShareChoice } from './directories.ts';
import { isMountType, type MountType } from './mount-types.ts';

/** A share of a machine. */
export interface MountRecord extends Share {
  /** True if it has been mounted since the guest started. */
  mounted: boolean;
}

/** The outcome for a directory: a share with its record, or the reason that there is none. */
export type DirectoryRecord = MountRecord | Exclude<ShareChoice, Share>;

/** The directories that a machine was started with, whatever a newer service finds: devices stay fixed. */
export interface MountsRecord {
  /** Absent if nothing is shared. */
  type?: MountType;
  /** The part of the spec that it was made from. */
  asked: MachineSpec['mounts'];
  /** In the order of `directoriesToShare`. */
  directories: readonly DirectoryRecord[];
}

export function isShared(directory: DirectoryRecord): directory is MountRecord {
  return 'real' in directory;
}

/** Reads the record. Undefined when there is none or it cannot be parsed. */
export async function readMountsRecord(file: string): Promise<MountsRecord | undefined> {
  const text = await readIfThere(file);
  const value = text === undefined ? undefined : parseJson(text);
  return isObject(value) ? (parseMounts(value) ?? ofOlderRelease(value)) : undefined;
}

export async function writeMountsRecord(file: string, record: MountsRecord): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(record, undefined, 2)}\n`);
}

function parseMounts({ type, asked, directories }: JsonObject): MountsRecord | undefined {
  if (!Array.isArray(directories) || !isObject(asked)) return undefined;
  if (type !== undefined && !isMountType(type)) return undefined;
  const known = directories.map((directory) => (isObject(directory) ? parseDirectory(directory) : undefined));
  const all = known.filter((directory) => directory !== undefined);
  if (all.length !== known.length || (type === undefined && all.some(isShared))) return undefined;
  const modes = Object.entries(asked).flatMap(([path, mode]) => (isMode(mode) ? [[path, mode] as const] : []));
  return { ...defined({ type }), asked: Object.fromEntries(modes), directories: all };
}

function parseDirectory({ id, path, real, mode, hidden, mounted, missing }: JsonObject): DirectoryRecord | undefined {
  if (typeof path !== 'string') return undefined;
  if (typeof missing === 'string') return { path, missing };
  if (mode === 'none') return { path, mode };
  if (typeof id !== 'string' || typeof real !== 'string' || !isMode(mode) || !Array.isArray(hidden)) return undefined;
  const places = hidden.filter((place) => typeof place === 'string');
  return { id, path, real, mode, hidden: places, mounted: mounted === true };
}

/** Converts the record of a release that only shared the home directory, which has no list. */
function ofOlderRelease({ type, missing, ...rest }: JsonObject): MountsRecord | undefined {
  if (typeof missing === 'string') return { asked: {}, directories: [{ path: '~', missing }] };
  const home = parseDirectory({ ...rest, id: 'home', mode: 'writable' });
  return isMountType(type) && home ? { type, asked: {}, directories: [home] } : undefined;
}

function isMode(value: unknown): value is MachineSpec['mounts'][string] {
  return value === 'read-only' || value === 'writable' || value === 'writable-notify' || value === 'none';
}
