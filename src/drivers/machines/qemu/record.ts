import { defined, isObject, parseJson } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Clock } from '../../../os/clock.ts';
import type { MachineSpec, MachineStart } from '../../driver.ts';
import { parseMachineSpec } from '../shared/machine-spec.ts';
import type { Acceleration } from './accelerator.ts';

/** The recorded facts about a machine beyond those that QEMU and the guest report. */
export interface QemuRecord extends Acceleration {
  power: 'on' | 'off';
  spec: MachineSpec;
  /** Digest of the image of its root disk. */
  image: string;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  sshPort: number;
  /** The guest has responded since QEMU was started. */
  booted: boolean;
  /** The machine's memory, processors or disks differ from those QEMU was started with. */
  adjusted?: boolean;
  /** A degradation since its start, as a clause. */
  flaw?: string;
  /** The degradation is a file system that was still growing: the guest has newer facts. */
  growing?: boolean;
  /** Processors that the guest's kernel can use until its next boot; absent when unknown. */
  possibleCpus?: number;
  /** The way that the machine came up. */
  started?: MachineStart;
  /** The fingerprint for a frozen state; absent if none is to be saved. */
  frozenKey?: string;
}

/** Reads the record. Undefined when there is none; `damaged` when it cannot be parsed. */
export async function readQemuRecord(file: string): Promise<QemuRecord | 'damaged' | undefined> {
  const text = await readIfThere(file);
  return text === undefined ? undefined : (parseRecord(parseJson(text)) ?? 'damaged');
}

export async function writeQemuRecord(file: string, record: QemuRecord): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(record, undefined, 2)}\n`);
}

function parseRecord(value: unknown): QemuRecord | undefined {
  if (!isObject(value)) return undefined;
  const { power, image, sshPort, accelerator, emulatedBecause, booted, adjusted, flaw, growing, frozenKey } = value;
  const { possibleCpus } = value;
  const spec = parseMachineSpec(value.spec);
  if (!spec) return undefined;
  if (power !== 'on' && power !== 'off') return undefined;
  if (typeof image !== 'string' || typeof sshPort !== 'number') return undefined;
  if (accelerator !== 'kvm' && accelerator !== 'hvf' && accelerator !== 'tcg') return undefined;
  const started = parseStart(value.started);
  return {
    power,
    image,
    sshPort,
    accelerator,
    booted: booted === true,
    spec,
    ...(typeof emulatedBecause === 'string' ? { emulatedBecause } : {}),
    ...(adjusted === true ? { adjusted } : {}),
    ...(typeof flaw === 'string' ? { flaw, ...(growing === true ? { growing } : {}) } : {}),
    ...(typeof possibleCpus === 'number' ? { possibleCpus } : {}),
    ...defined({ started }),
    ...(typeof frozenKey === 'string' ? { frozenKey } : {}),
  };
}

function parseStart(value: unknown): MachineStart | undefined {
  if (!isObject(value) || (value.how !== 'boot' && value.how !== 'resume') || !Array.isArray(value.phases))
    return undefined;
  const phases = value.phases.flatMap((phase) =>
    isObject(phase) && typeof phase.name === 'string' && typeof phase.ms === 'number'
      ? [{ name: phase.name, ms: phase.ms }]
      : [],
  );
  return { how: value.how, phases };
}

/** Measures the duration of consecutive phases. */
export function phases(clock: Pick<Clock, 'now'>) {
  const begin = clock.now();
  const ends: { name: string; at: number }[] = [];
  return {
    /** Ends the current phase, which began with the end of the last one, or at the beginning. */
    end: (name: string) => void ends.push({ name, at: Math.round(clock.now() - begin) }),
    /** Returns the phases in whole milliseconds that add up to the total. */
    all: (): MachineStart['phases'] =>
      ends.map(({ name, at }, index) => ({ name, ms: at - (ends[index - 1]?.at ?? 0) })),
  };
}

export type Phases = ReturnType<typeof phases>;
