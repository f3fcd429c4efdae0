import { dirname } from 'node:path';
import { isObject } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../storage/atomic-file.ts';
import { parsePlace, placeOf, standing } from '../../../storage/place.ts';
import type { MachineSpec } from '../../driver.ts';
import { parseMachineSpec } from '../../machine-spec.ts';
import type { Range } from './subnet.ts';
import { formatRange, parseRange } from './subnet.ts';

/** What is written about the machine: before anything is made, and after everything is taken away. */
export interface MachineRecord {
  power: 'on' | 'off';
  spec: MachineSpec;
  /** IPv4 range that this instance uses for its containers. */
  pool: Range;
  /** Boot in which we turned forwarding on; absent when it was on already. */
  forwardingBoot?: string;
  /** It is of another directory, which this one is a copy of: what it names is not ours. */
  copied?: true;
}

/** Undefined when there is none; `damaged` when it cannot be understood. */
export async function readMachineRecord(file: string): Promise<MachineRecord | 'damaged' | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'damaged';
  }
  const record = parse(value);
  if (!record) return 'damaged';
  const at = isObject(value) ? parsePlace(value.at) : undefined;
  return standing(at, dirname(file)) === 'copied' ? { ...record, copied: true } : record;
}

export async function writeMachineRecord(file: string, record: Omit<MachineRecord, 'copied'>): Promise<void> {
  const pool = formatRange(record.pool);
  await writeFileAtomic(file, `${JSON.stringify({ ...record, pool, at: placeOf(dirname(file)) }, null, 2)}\n`);
}

function parse(value: unknown): MachineRecord | undefined {
  if (!isObject(value)) return undefined;
  const { power, forwardingBoot } = value;
  const spec = parseMachineSpec(value.spec);
  const pool = typeof value.pool === 'string' ? parseRange(value.pool) : undefined;
  if (!spec || (power !== 'on' && power !== 'off') || !pool) return undefined;
  return { power, pool, spec, ...(typeof forwardingBoot === 'string' ? { forwardingBoot } : {}) };
}
