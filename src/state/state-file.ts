import { isObject, type JsonValue } from '../json.ts';
import { type FileOperations, readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError } from '../os/io-error.ts';
import type { FirstRun } from '../plan/layers.ts';
import { reserveBeside } from './reserve.ts';

/** What a service persists besides the settings. */
export interface ServiceState {
  /** Chosen at the first start; never changes by itself. */
  driver: string;
  power: 'started' | 'stopped';
  /** Version of the desired state; increases with every change and every start. */
  generation: number;
}

export type LoadedState =
  | { kind: 'missing' }
  | { kind: 'loaded'; state: ServiceState }
  /** It exists and is unusable; `setAside` makes room for a new one. */
  | { kind: 'broken' };

const FORMAT = 1;

/** Reads the state file. @throws RdError `ERR_IO` when it cannot be read. */
export async function loadState(path: string): Promise<LoadedState> {
  let text: string | undefined;
  try {
    text = await readIfThere(path);
  } catch (cause) {
    throw ioError('read', path, cause);
  }
  if (text === undefined) return { kind: 'missing' };
  const state = interpret(text);
  return state ? { kind: 'loaded', state } : { kind: 'broken' };
}

/** Writes the state durably. On a full disk it uses reserved space: the intent to stop can always be recorded. */
export async function saveState(
  path: string,
  state: ServiceState,
  operations: FileOperations = reserveBeside(path),
): Promise<void> {
  const text = `${JSON.stringify({ format: FORMAT, ...state }, null, 2)}\n`;
  await writeFileAtomic(path, text, { operations });
}

function interpret(text: string): ServiceState | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.format !== FORMAT) return undefined;
  const { driver, power, generation } = value;
  if (typeof driver !== 'string' || (power !== 'started' && power !== 'stopped')) return undefined;
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation) || generation < 0) return undefined;
  return { driver, power, generation };
}

/** Records how the settings of a home were initialized, to explain their origin later. */
export async function recordFirstRun(path: string, firstRun: FirstRun): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify(firstRun, null, 2)}\n`);
}

/** The record; empty when missing or broken, because nothing depends on it. */
export async function recordedFirstRun(path: string): Promise<FirstRun | undefined> {
  try {
    const value: JsonValue = JSON.parse((await readIfThere(path)) ?? 'null');
    if (!isObject(value) || typeof value.at !== 'string') return undefined;
    return { at: value.at, ...(typeof value.defaults === 'string' ? { defaults: value.defaults } : {}) };
  } catch {
    return undefined;
  }
}
