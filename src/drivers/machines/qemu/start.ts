import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { stopDaemon } from '../../../os/daemon.ts';
import { isThere } from '../../../os/regular-file.ts';
import type { MachineSpec, MachineStart } from '../../driver.ts';
import { ARCHITECTURES, type Architecture, foreignImage } from '../../guest-images/architecture.ts';
import { type GuestImage, imageToBoot } from '../../guest-images/image.ts';
import type { Run } from '../../shell.ts';
import type { QemuArguments } from './arguments.ts';
import { ensureData, ensureRoot } from './disks.ts';
import { removeFrozen } from './frozen/freeze.ts';
import { resumeMachine } from './frozen/resume.ts';
import { frozenFacts, frozenKey, frozenPlaces, readFrozen } from './frozen/state.ts';
import { launchQemu } from './launch.ts';
import { degradationOf, parseGrowth } from './live/disk-growth.ts';
import { GIB } from './live/facts.ts';
import { featureFor } from './mounts/mount-types.ts';
import type { MachineParts } from './parts.ts';
import { qemuFailed } from './parts.ts';
import type { QemuPlaces } from './places.ts';
import { makeRuntime } from './places.ts';
import { type Phases, phases, type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';
import { parseSettled, SETTLE_SCRIPT } from './setup-scripts.ts';

/** Without hardware virtualization a guest boots in half a minute on an idle host. */
const BOOT_MS = 300_000;
/** The guest's own boot timeouts, plus a margin for a busy one. */
const SETTLE_MS = 120_000;
const QUIT_MS = 10_000;

/**
 * Starts a machine that is off or only left stale files: resumes a matching frozen state, otherwise boots, also when the state turns out to be
 * unusable.
 * @throws RdError `ERR_DRIVER_TERMINAL` without an image and with a damaged data disk, `ERR_DRIVER_FAILED` when QEMU or the guest does not come up,
 * `ERR_CANCELLED`.
 */
export async function startMachine(parts: MachineParts, spec: MachineSpec, signal: AbortSignal): Promise<void> {
  const { places, host, run, guest, guestClock, accelerator, freezes, mounts, clock, log } = parts;
  const times = phases(clock);
  const known = await readQemuRecord(places.record);
  const previous = known === 'damaged' ? undefined : known;
  if (previous?.booted) await reportEnd(parts);
  const image = await chooseImage(parts, previous, featureFor(spec));
  await parts.images.verifyDisk(image);
  const sshPort = await freePort();
  const record: QemuRecord = {
    power: 'on',
    spec,
    image: image.digest,
    sshPort,
    ...(await accelerator(signal)),
    booted: false,
  };
  guestClock.forget();
  await makeRuntime(places);
  await ensureKeys(places, sshPort, run, signal);
  const diskParts = { places, run, log, signal };
  const dataBytes = await ensureData(diskParts, spec.diskBytes);
  record.spec = { ...spec, diskBytes: dataBytes };
  await rm(places.serialLog, { force: true });
  const argv: QemuArguments = {
    image,
    host,
    places,
    accelerator: record.accelerator,
    memoryGiB: spec.memoryGiB,
    cpus: spec.cpus,
    ...ceilings(spec, host.architecture),
    sshPort,
    extra: await mounts.begin(spec, signal),
  };
  // HVF is not known to save and load all of a guest's state.
  if (freezes && record.accelerator !== 'hvf') {
    record.frozenKey = frozenKey(await frozenFacts({ image: image.digest, argv, dataBytes, places, run, signal }));
  }
  // Before QEMU starts, so that the next start or stop knows what a crash left.
  await writeQemuRecord(places.record, record);
  times.end('preparation');
  let how: MachineStart['how'] = 'resume';
  let settled = await tryResume(
    parts,
    { image, argv, key: record.frozenKey, before: previous?.started },
    times,
    signal,
  );
  if (settled === undefined) {
    how = 'boot';
    await ensureRoot(diskParts, join(image.directory, image.files.disk.name), previous?.image === image.digest);
    times.end('root disk');
    await boot(parts, image, argv, signal);
    times.end('boot');
    settled = (await guest.run(['sh', '-s'], { input: SETTLE_SCRIPT, timeoutMs: SETTLE_MS, signal })).stdout;
    times.end('network');
  }
  const { growth: report, possibleCpus } = parseSettled(settled);
  if (possibleCpus !== undefined) record.possibleCpus = possibleCpus;
  if (report !== '') {
    const growth = parseGrowth(report);
    const flaw = degradationOf(growth, dataBytes);
    log(growth.state === 'failed' ? 'warn' : 'info', 'the file system of the data disk is smaller than the disk', {
      why: flaw,
    });
    if (flaw !== undefined) Object.assign(record, { flaw, growing: growth.state === 'going' });
  }
  // Before any container can run.
  await parts.hostPorts.set(spec.hostPorts, signal);
  times.end('packet filter');
  await mountDirectories(parts, spec, signal);
  times.end('directories');
  await writeQemuRecord(places.record, { ...record, booted: true, started: { how, phases: times.all() } });
  log('info', 'the guest is up', { image: image.digest, accelerator: record.accelerator, how });
}

/** Logs the reason that a machine ended which nobody stopped, while its logs exist: its next start empties them. */
async function reportEnd({ logFile, places, log }: MachineParts): Promise<void> {
  const { message, details } = await qemuFailed(logFile, places.serialLog);
  log('warn', 'the machine had ended by itself', { why: message, details });
}

async function boot(parts: MachineParts, image: GuestImage, argv: QemuArguments, signal: AbortSignal): Promise<void> {
  const { places, logFile, images, guest, isAlive } = parts;
  await launchQemu(parts, argv);
  try {
    await guest.connect(BOOT_MS, isAlive, signal);
  } catch (error) {
    signal.throwIfAborted();
    // Verify the image only after a failure: hashing takes seconds that every start would pay.
    await images.verify(image, signal);
    if (await isAlive()) throw error;
    throw await qemuFailed(logFile, places.serialLog, error);
  }
}

interface ResumeInput {
  image: GuestImage;
  argv: QemuArguments;
  key: string | undefined;
  /** The previous start. */
  before: MachineStart | undefined;
}

/**
 * Resumes the guest from a frozen state. Returns the output of the settle script, undefined on failure. Reports the reason and removes an
 * unusable state.
 */
async function tryResume(
  parts: MachineParts,
  { image, argv, key, before }: ResumeInput,
  times: Phases,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (key === undefined) return undefined;
  const { places, guest, clock, log } = parts;
  const files = frozenPlaces(places);
  const frozen = await readFrozen(files.directory, key);
  if (frozen === undefined) return undefined;
  if ('problem' in frozen) {
    log('info', 'removing an unusable frozen state', { why: frozen.problem });
    await removeFrozen(files);
    return undefined;
  }
  const resume = await resumeMachine(parts, image, argv, frozen, { phases: times, before }, signal);
  if (resume.how === 'resumed') return resume.settled;
  const { unusable, why } = resume;
  log(
    'warn',
    unusable
      ? 'the machine cannot be resumed: removing its frozen state and booting'
      : 'the machine cannot be resumed this time: booting and keeping its frozen state',
    { why },
  );
  await guest.close();
  await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, clock, signal });
  if (unusable) await removeFrozen(files);
  times.end('failed resume');
  return undefined;
}

async function chooseImage(
  { images, host: { architecture }, log }: MachineParts,
  previous: QemuRecord | undefined,
  feature: string | undefined,
): Promise<GuestImage> {
  const known = await images.list();
  const [selected, current] = [await images.selected(), previous?.image];
  const image = imageToBoot(known, { architecture, selected, current, feature });
  const asked = known.find(({ digest }) => digest === selected) ?? (image ? undefined : known[0]);
  if (asked && asked.architecture !== architecture) throw foreignImage(asked, architecture);
  if (image) {
    for (const digest of new Set([selected, current])) {
      if (digest === undefined || known.some((other) => other.digest === digest)) continue;
      log('warn', `the ${digest === selected ? 'selected image' : 'image of the machine'} is missing`, { digest });
    }
    if (current !== undefined && image.digest !== current) {
      log('info', 'using another image for the machine', { digest: image.digest, instead: current });
    }
    return image;
  }
  throw new RdError('ERR_DRIVER_TERMINAL', 'there is no guest image to create a machine from', {
    advice:
      'Build one with `rdctl image build`, or download one with `rdctl image fetch`. The data of the machine is on a separate disk.',
  });
}

/** Mounts the directories. A failure is not fatal: the next observation finds it and retries. */
async function mountDirectories({ mounts, log }: MachineParts, spec: MachineSpec, signal: AbortSignal): Promise<void> {
  try {
    await mounts.mount(spec, signal);
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    log('warn', 'directories are not mounted in the machine yet', { why });
  }
}

/** Returns a free port. If another process takes it before QEMU does, the start fails, and the next one picks another. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** QEMU's emulated processors cannot all address more than this. */
const MAX_MEMORY_GIB = 512;
const CPUS_PER_CPU = 2;

/**
 * Returns the hot-plug limits of a machine. Memory: that of this host. Processors: twice as many as it has, because virtual processors share real
 * ones, and a host with two would leave no room. Empty slots cost the guest next to nothing.
 */
export function ceilings(
  { memoryGiB, cpus }: Pick<MachineSpec, 'memoryGiB' | 'cpus'>,
  architecture: Architecture,
  host = { memoryBytes: totalmem(), cpus: availableParallelism() },
): Pick<QemuArguments, 'memoryCeilingGiB' | 'cpuCeiling'> {
  if (!ARCHITECTURES[architecture].hotplug) return { memoryCeilingGiB: memoryGiB, cpuCeiling: cpus };
  return {
    memoryCeilingGiB: Math.max(memoryGiB, Math.min(MAX_MEMORY_GIB, Math.floor(host.memoryBytes / GIB))),
    cpuCeiling: Math.max(cpus, CPUS_PER_CPU * host.cpus),
  };
}

/** True if both halves of a key exist and match: a truncated or mixed pair would lock us out of every guest. */
async function isKeyPair(path: string, run: Run, signal: AbortSignal): Promise<boolean> {
  const other = await readIfThere(`${path}.pub`);
  if (other === undefined || !(await isThere(path))) return false;
  const { exitCode, stdout } = await run(['ssh-keygen', '-y', '-P', '', '-f', path], { accept: [0, 1, 255], signal });
  const [derived, recorded] = [stdout, other].map((text) => text.trim().split(' ').slice(0, 2).join(' '));
  return exitCode === 0 && derived === recorded;
}

async function ensureKeyPair(path: string, id: string, run: Run, signal: AbortSignal): Promise<void> {
  if (await isKeyPair(path, run, signal)) return;
  await Promise.all([path, `${path}.pub`].map((file) => rm(file, { force: true })));
  await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', `rdctl-${id}`, '-f', path], { signal });
  await chmod(path, 0o600);
}

/**
 * Ensures the two key pairs of a machine, created once and recreated when unusable: the login key and the host key. QEMU passes both to the guest at
 * every boot, so its first connection is as trusted as any later one.
 */
export async function ensureKeys(places: QemuPlaces, port: number, run: Run, signal: AbortSignal): Promise<void> {
  await Promise.all([places.key, places.hostKey].map((path) => ensureKeyPair(path, places.id, run, signal)));
  const [type, key] = (await readFile(`${places.hostKey}.pub`, 'utf8')).split(' ');
  if (type === undefined || key === undefined) {
    throw new RdError('ERR_DRIVER_FAILED', `${places.hostKey}.pub is not a public key`, {
      advice: `Remove ${places.hostKey} and ${places.hostKey}.pub; the next start creates new ones.`,
    });
  }
  await writeFileAtomic(places.knownHosts, `[127.0.0.1]:${port} ${type} ${key.trim()}\n`);
  await writeFile(places.hostname, `rdctl-${places.id}`);
}
