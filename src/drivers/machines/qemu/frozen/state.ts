import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { isObject, type JsonValue, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import { ARCHITECTURES } from '../../../guest-images/architecture.ts';
import type { Run } from '../../../shell.ts';
import { type Accelerator, type QemuArguments, qemuArguments } from '../arguments.ts';
import * as filterScripts from '../host-ports/rules.ts';
import * as mountScripts from '../mounts/guest-scripts.ts';
import { type QemuPlaces, qemuPlaces } from '../places.ts';
import * as shellScripts from '../scripts.ts';
import * as frozenScripts from '../setup-scripts.ts';

/** The paths of a machine's frozen state. Files in `directory` contain no paths, so that a copy works for another machine. */
export interface FrozenPlaces {
  directory: string;
  /** A partial state; never read as a complete one. */
  draft: string;
  /** The root disk of a resumed machine: a layer over the one of the state. Deleted with the machine. */
  layer: string;
  /** The migration socket, in either direction. */
  socket: string;
}

/** Files in the directory. */
export const STATE = 'state';
export const ROOT = 'root.qcow2';
const MANIFEST = 'frozen.json';

export function frozenPlaces({ record, run }: Pick<QemuPlaces, 'record' | 'run'>): FrozenPlaces {
  const home = dirname(record);
  return {
    directory: join(home, 'frozen'),
    draft: join(home, 'frozen.new'),
    layer: join(home, 'layer.qcow2'),
    socket: join(run, 'state'),
  };
}

/** Size and digest of a file as it was written. */
export interface FileDigest {
  bytes: number;
  /** Lowercase hexadecimal. */
  sha256: string;
}

/** Contents of a frozen state directory. */
export interface FrozenState {
  key: string;
  /** Memory and devices. */
  state: FileDigest;
  /** The root disk at the same point in time. */
  root: FileDigest;
}

/** Writes the description of a state last: without it, a state is incomplete. */
export async function writeFrozen(directory: string, { key, state, root }: FrozenState): Promise<void> {
  await writeFileAtomic(join(directory, MANIFEST), `${JSON.stringify({ key, state, root }, undefined, 2)}\n`);
}

/**
 * Returns the frozen state in the directory, or the reason that it is unusable, as a clause; undefined when there is none. Digests are verified by
 * the reader of the files.
 */
export async function readFrozen(
  directory: string,
  key: string,
): Promise<FrozenState | { problem: string } | undefined> {
  const text = await readIfThere(join(directory, MANIFEST));
  if (text === undefined) return undefined;
  const frozen = parseFrozenState(text);
  if (frozen === undefined) return { problem: 'its manifest cannot be parsed' };
  if (frozen.key !== key) return { problem: 'it belongs to another machine, image or QEMU version' };
  for (const [name, { bytes }] of [
    [STATE, frozen.state],
    [ROOT, frozen.root],
  ] as const) {
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts?.isFile() !== true) return { problem: `${name} is missing` };
    if (facts.size !== bytes) return { problem: `${name} has ${facts.size} bytes instead of ${bytes}` };
  }
  return frozen;
}

function parseFrozenState(text: string): FrozenState | undefined {
  const value = parseJson(text);
  if (!isObject(value) || typeof value.key !== 'string') return undefined;
  const state = parseDigest(value.state);
  const root = parseDigest(value.root);
  return state && root ? { key: value.key, state, root } : undefined;
}

function parseDigest(value: JsonValue | undefined): FileDigest | undefined {
  if (!isObject(value)) return undefined;
  const { bytes, sha256 } = value;
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes <= 0) return undefined;
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? { bytes, sha256 } : undefined;
}

/** Everything that a frozen state depends on. */
export interface FrozenFacts {
  /** Digest of the image. */
  image: string;
  /** QEMU's version string. */
  qemu: string;
  /** The host processor, if the guest sees it. */
  processor: string;
  /** The command line of the machine, without host paths and ports. */
  shape: readonly string[];
  /** Size of the data disk, which the guest caches. */
  dataBytes: number;
  /** Public halves of the keys in the guest's memory. */
  keys: readonly string[];
}

/** Increment when the work before a freeze or after a resume changes outside the scripts. */
const FORMAT = 1;

/**
 * Returns the fingerprint of the facts: lowercase hexadecimal.
 * @param scripts the scripts of this version: a state is stale once they change.
 */
export function frozenKey(facts: FrozenFacts, scripts: readonly string[] = GUEST_SCRIPTS): string {
  const { image, qemu, processor, shape, dataBytes, keys } = facts;
  const all = [FORMAT, image, qemu, processor, shape, dataBytes, keys, scripts];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

/** Returns the command line of a machine without its location: equal for every directory, image store and port. */
export function machineShape(input: QemuArguments): string[] {
  const places = qemuPlaces('/machine', '/runtime');
  return qemuArguments({ ...input, image: { ...input.image, directory: '/image' }, places, sshPort: 1 });
}

export interface FrozenFactsInput {
  image: string;
  argv: QemuArguments;
  dataBytes: number;
  places: Pick<QemuPlaces, 'key' | 'hostKey'>;
  run: Run;
  signal: AbortSignal;
}

/**
 * Collects the facts of a machine.
 * @throws RdError `ERR_DRIVER_TERMINAL` when there is no QEMU; `ERR_CANCELLED`.
 */
export async function frozenFacts(input: FrozenFactsInput): Promise<FrozenFacts> {
  const { image, argv, dataBytes, places, run, signal } = input;
  const [{ stdout }, processor, ...keys] = await Promise.all([
    run([ARCHITECTURES[argv.host.architecture].qemu.program, '--version'], { signal }),
    processorOf(argv.accelerator),
    ...[places.key, places.hostKey].map((path) => readFile(`${path}.pub`, 'utf8')),
  ]);
  const [qemu = ''] = stdout.split('\n');
  return { image, qemu, processor, shape: machineShape(argv), dataBytes, keys };
}

/** Returns the host processor, which the guest sees with hardware virtualization, and whose features it has detected. */
async function processorOf(accelerator: Accelerator): Promise<string> {
  if (accelerator === 'tcg') return '';
  const [first = ''] = (await readFile('/proc/cpuinfo', 'utf8')).split('\n\n');
  const lines = first
    .split('\n')
    .filter((line) =>
      /^(vendor_id|cpu family|model|model name|stepping|microcode|flags|Features|CPU (implementer|architecture|variant|part|revision))\s*:/.test(
        line,
      ),
    );
  return [release(), ...lines].join('\n');
}

/** All scripts in the modules that change frozen state in the guest or that a resume relies on. */
export const GUEST_SCRIPTS: readonly string[] = [frozenScripts, shellScripts, mountScripts, filterScripts].flatMap(
  (module) =>
    Object.entries(module)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([, value]) => (typeof value === 'string' ? [value] : [])),
);
