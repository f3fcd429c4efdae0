import { isObject } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../storage/atomic-file.ts';
import type { MachineSpec } from '../../driver.ts';
import { parseMachineSpec } from '../../machine-spec.ts';
import type { Accelerator } from './arguments.ts';

/** What is known about a machine beside what QEMU and the guest say themselves. */
export interface QemuRecord {
  power: 'on' | 'off';
  spec: MachineSpec;
  /** Digest of the image that its root disk was made from. */
  image: string;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  sshPort: number;
  accelerator: Accelerator;
  /** The guest has answered since QEMU was started. */
  booted: boolean;
  /** Its memory, processors or disks are not those that QEMU was started with. */
  adjusted?: boolean;
}

/** Undefined when there is none; `damaged` when it cannot be understood. */
export async function readQemuRecord(file: string): Promise<QemuRecord | 'damaged' | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return parsed(JSON.parse(text)) ?? 'damaged';
  } catch {
    return 'damaged';
  }
}

export async function writeQemuRecord(file: string, record: QemuRecord): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(record, undefined, 2)}\n`);
}

function parsed(value: unknown): QemuRecord | undefined {
  if (!isObject(value)) return undefined;
  const { power, image, sshPort, accelerator, booted, adjusted } = value;
  const spec = parseMachineSpec(value.spec);
  if (!spec) return undefined;
  if (power !== 'on' && power !== 'off') return undefined;
  if (typeof image !== 'string' || typeof sshPort !== 'number') return undefined;
  if (accelerator !== 'kvm' && accelerator !== 'tcg') return undefined;
  return {
    power,
    image,
    sshPort,
    accelerator,
    booted: booted === true,
    spec,
    ...(adjusted === true ? { adjusted } : {}),
  };
}
