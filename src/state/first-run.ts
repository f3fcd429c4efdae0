import { isObject, type JsonValue } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import type { FirstRun } from '../plan/layers.ts';

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
