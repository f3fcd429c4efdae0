import { isObject, type JsonObject, type JsonValue } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../storage/atomic-file.ts';
import type { MachineSpec } from '../../driver.ts';
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
  if (!isObject(value) || !isObject(value.spec) || !isObject(value.spec.mount)) return undefined;
  const { power, image, sshPort, accelerator, booted, spec } = value;
  if (power !== 'on' && power !== 'off') return undefined;
  if (typeof image !== 'string' || typeof sshPort !== 'number') return undefined;
  if (accelerator !== 'kvm' && accelerator !== 'tcg') return undefined;
  return { power, image, sshPort, accelerator, booted: booted === true, spec: specOf(spec, value.spec.mount) };
}

function specOf(spec: JsonObject, mount: JsonObject): MachineSpec {
  return {
    memoryGiB: number(spec.memoryGiB),
    cpus: number(spec.cpus),
    diskBytes: number(spec.diskBytes),
    type: text(spec.type),
    useRosetta: spec.useRosetta === true,
    mount: {
      type: text(mount.type),
      securityModel: text(mount.securityModel),
      protocolVersion: text(mount.protocolVersion),
      msizeInKib: number(mount.msizeInKib),
      cacheMode: text(mount.cacheMode),
    },
    sshPortForwarder: spec.sshPortForwarder === true,
    adminAccess: spec.adminAccess === true,
  };
}

function number(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
