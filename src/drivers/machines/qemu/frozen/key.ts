import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { type Accelerator, type QemuArguments, qemuArguments } from '../arguments.ts';
import type { HostRun } from '../disks.ts';
import * as homeScripts from '../mounts/scripts.ts';
import { type QemuPlaces, qemuPlaces } from '../places.ts';
import * as shellScripts from '../scripts.ts';
import * as frozenScripts from './scripts.ts';

/** Everything that a frozen state depends on. */
export interface FrozenFacts {
  /** Digest of the image. */
  image: string;
  /** QEMU's version string. */
  qemu: string;
  /** The host processor, where the guest sees it. */
  processor: string;
  /** The machine, without host paths and ports. */
  shape: readonly string[];
  /** Size of the data disk, which the guest caches. */
  dataBytes: number;
  /** Public halves of the keys in the guest's memory. */
  keys: readonly string[];
}

/** Increment when the work before a freeze or after a resume changes outside the scripts. */
const FORMAT = 1;

/**
 * Fingerprint of all of it: lowercase hexadecimal.
 * @param scripts the scripts of this version: a state is stale once they change.
 */
export function frozenKey(facts: FrozenFacts, scripts: readonly string[] = GUEST_SCRIPTS): string {
  const { image, qemu, processor, shape, dataBytes, keys } = facts;
  const all = [FORMAT, image, qemu, processor, shape, dataBytes, keys, scripts];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

/** The command line of the same machine without its location: equal for every directory, image store and port. */
export function machineShape(input: QemuArguments): string[] {
  const places = qemuPlaces('/machine', '/runtime');
  return qemuArguments({ ...input, image: { ...input.image, directory: '/image' }, places, sshPort: 1 });
}

export interface FrozenFactsInput {
  image: string;
  argv: QemuArguments;
  dataBytes: number;
  places: Pick<QemuPlaces, 'key' | 'hostKey'>;
  run: HostRun;
  signal: AbortSignal;
}

/** @throws RdError `ERR_DRIVER_TERMINAL` when there is no QEMU; `ERR_CANCELLED`. */
export async function frozenFacts(input: FrozenFactsInput): Promise<FrozenFacts> {
  const { image, argv, dataBytes, places, run, signal } = input;
  const [{ stdout }, processor, ...keys] = await Promise.all([
    run(['qemu-system-x86_64', '--version'], { signal }),
    processorOf(argv.accelerator),
    ...[places.key, places.hostKey].map((path) => readFile(`${path}.pub`, 'utf8')),
  ]);
  const [qemu = ''] = stdout.split('\n');
  return { image, qemu, processor, shape: machineShape(argv), dataBytes, keys };
}

/** With hardware virtualization the guest sees the host processor and has detected its features. */
async function processorOf(accelerator: Accelerator): Promise<string> {
  if (accelerator === 'tcg') return '';
  const [first = ''] = (await readFile('/proc/cpuinfo', 'utf8')).split('\n\n');
  const lines = first
    .split('\n')
    .filter((line) => /^(vendor_id|cpu family|model|model name|stepping|microcode|flags)\s*:/.test(line));
  return [release(), ...lines].join('\n');
}

/** Every script in the modules that change frozen state in the guest or that a resume relies on. */
export const GUEST_SCRIPTS: readonly string[] = [frozenScripts, shellScripts, homeScripts].flatMap((module) =>
  Object.entries(module)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, value]) => (typeof value === 'string' ? [value] : [])),
);
