import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, type JsonValue } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import { MANIFEST, ROOT, STATE } from './places.ts';

/** A file as it was written. */
export interface Summed {
  bytes: number;
  /** Lowercase hexadecimal. */
  sha256: string;
}

/** Contents of a frozen state directory. */
export interface FrozenState {
  key: string;
  /** Memory and devices. */
  state: Summed;
  /** The root disk at the same point in time. */
  root: Summed;
}

/** Written last: a state without it is incomplete. */
export async function writeFrozen(directory: string, { key, state, root }: FrozenState): Promise<void> {
  await writeFileAtomic(join(directory, MANIFEST), `${JSON.stringify({ key, state, root }, undefined, 2)}\n`);
}

/**
 * The frozen state in the directory, or why it is unusable, as a clause; undefined when there is none. Digests are verified by the reader
 * of the files.
 */
export async function readFrozen(
  directory: string,
  key: string,
): Promise<FrozenState | { problem: string } | undefined> {
  const text = await readIfThere(join(directory, MANIFEST));
  if (text === undefined) return undefined;
  const frozen = parsed(text);
  if (frozen === undefined) return { problem: 'its manifest cannot be understood' };
  if (frozen.key !== key) return { problem: 'it is of another machine, image or QEMU' };
  for (const [name, { bytes }] of [
    [STATE, frozen.state],
    [ROOT, frozen.root],
  ] as const) {
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts?.isFile() !== true) return { problem: `${name} is missing` };
    if (facts.size !== bytes) return { problem: `${name} has ${facts.size} bytes and not ${bytes}` };
  }
  return frozen;
}

function parsed(text: string): FrozenState | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || typeof value.key !== 'string') return undefined;
  const state = summed(value.state);
  const root = summed(value.root);
  return state && root ? { key: value.key, state, root } : undefined;
}

function summed(value: JsonValue | undefined): Summed | undefined {
  if (!isObject(value)) return undefined;
  const { bytes, sha256 } = value;
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes <= 0) return undefined;
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? { bytes, sha256 } : undefined;
}
