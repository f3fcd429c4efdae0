import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type JsonObject, parseObject } from '../json.ts';
import { type FileOperations, readIfThere } from '../os/atomic-file.ts';
import { readableRecord, readRecord, writeRecord } from '../os/record.ts';
import type { FirstRun } from '../plan/layers.ts';
import { DRIVER_NAMES } from '../product.ts';
import type { Blocks } from '../settings/blocks.gen.ts';
import { storedBlocks } from '../settings/blocks.ts';
import type { Places } from './places.ts';
import { reserveBeside } from './reserve.ts';

/** The state that a service persists besides the settings, with the blocks in force. */
export interface ServiceState extends Blocks {
  /** Chosen at the first start; never changes on its own. */
  driver: string;
  power: 'started' | 'stopped';
  /** Version of the desired state; increases with every change and every start. */
  generation: number;
}

export type LoadedState =
  | { kind: 'missing' }
  | { kind: 'loaded'; state: ServiceState }
  /** The file exists and is unusable; `setAside` makes room for a new one. */
  | { kind: 'broken' };

const FORMAT = 1;

/**
 * Reads the state file.
 * @throws RdError `ERR_IO` when it cannot be read, `ERR_OTHER_VERSION` for a file of a newer release.
 */
export async function loadState(path: string): Promise<LoadedState> {
  const record = await readRecord(path);
  if (record === undefined) return { kind: 'missing' };
  const state = record === 'damaged' ? undefined : stateIn(record);
  return state ? { kind: 'loaded', state } : { kind: 'broken' };
}

/**
 * Returns the drivers whose backend may run, for a command that only stops it: the one in the state file, whatever its release; without a usable
 * file, every driver that has kept files. Never throws.
 */
export async function driversToStop({ state, stateFile }: Pick<Places, 'state' | 'stateFile'>): Promise<string[]> {
  const text = await readIfThere(stateFile).catch(() => '');
  if (text === undefined) return [];
  const driver = parseObject(text)?.driver;
  if (typeof driver === 'string') return [driver];
  const names: string[] = await readdir(join(state, 'drivers')).catch(() => []);
  return DRIVER_NAMES.filter((name) => names.includes(name));
}

/** Writes the state durably. On a full disk it uses reserved space: the intent to stop can always be recorded. */
export async function saveState(
  path: string,
  state: ServiceState,
  operations: FileOperations = reserveBeside(path),
): Promise<void> {
  await writeRecord(path, { format: FORMAT, ...state }, { operations });
}

/** Parses a state. Earlier releases wrote fewer blocks. */
function stateIn({ format, driver, power, generation, ...rest }: JsonObject): ServiceState | undefined {
  if (format !== FORMAT) return undefined;
  if (typeof driver !== 'string' || (power !== 'started' && power !== 'stopped')) return undefined;
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation) || generation < 0) return undefined;
  const blocks = storedBlocks(rest);
  return blocks && { driver, power, generation, ...blocks };
}

/** Records how the settings of a home were initialized, to explain their origin later. */
export async function recordFirstRun(path: string, firstRun: FirstRun): Promise<void> {
  await writeRecord(path, firstRun);
}

/** Returns the record of the first run, or undefined if it is missing or broken, because nothing depends on it. */
export async function readFirstRun(path: string): Promise<FirstRun | undefined> {
  const { at, defaults } = (await readableRecord(path)) ?? {};
  return typeof at === 'string' ? { at, ...(typeof defaults === 'string' ? { defaults } : {}) } : undefined;
}
