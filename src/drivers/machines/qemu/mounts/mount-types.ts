import { rm } from 'node:fs/promises';
import { RdError } from '../../../../errors.ts';
import type { JsonValue } from '../../../../json.ts';
import type { Clock } from '../../../../os/clock.ts';
import { findDaemon, startDaemon } from '../../../../os/daemon.ts';
import { tailOf } from '../../../../os/program-log.ts';
import { isThere } from '../../../../os/regular-file.ts';
import type { MachineSpec } from '../../../driver.ts';
import { parseMounts } from '../../shared/mountinfo.ts';
import { comma } from '../arguments.ts';
import type { Connection } from '../guest.ts';
import type { QemuPlaces } from '../places.ts';
import { ownConnection } from '../ssh.ts';
import type { HostFacts, SharedHome } from './host-facts.ts';

export const MOUNT_TYPES = ['reverse-sshfs', '9p', 'virtiofs'] as const;
/** `virtualMachine.mount.type`. */
export type MountType = (typeof MOUNT_TYPES)[number];

export function isMountType(value: JsonValue | undefined): value is MountType {
  return MOUNT_TYPES.some((type) => type === value);
}

/** Dependencies of a mount type. */
export interface MounterParts {
  places: QemuPlaces;
  guest: Pick<Connection, 'run'>;
  clock: Clock;
  /** Receives the output of host programs. */
  logFile: string;
  environment: Readonly<Record<string, string>>;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  port(): Promise<number>;
}

export interface MountWork {
  home: SharedHome;
  spec: MachineSpec;
  facts: HostFacts;
  parts: MounterParts;
  signal: AbortSignal;
}

/** One mount type: shows a host directory in the guest. */
export interface Mounter {
  readonly type: MountType;
  /** Features that the guest image must have. */
  readonly feature?: string;
  /** Pure: why the host or its images do not support it, as a clause; undefined when they do. */
  obstacle(facts: HostFacts): string | undefined;
  /** `on this host`: a host program that must run before QEMU; `into the guest`: one that mounts; else none. */
  readonly daemon?: 'on this host' | 'into the guest';
  /** Whether QEMU can save its state: `unmounted`, only while nothing is mounted in the guest. */
  readonly migration: 'free' | 'unmounted' | 'blocked';
  /** Pure: the QEMU arguments. */
  qemuArguments(home: SharedHome, spec: MachineSpec, places: QemuPlaces): string[];
  /** Starts the host program and waits until QEMU can use it. */
  begin?(work: MountWork): Promise<void>;
  /** Mounts in the guest. The mount point exists and is empty. */
  mount(work: MountWork): Promise<void>;
}

/** Name of the directory for QEMU and the guest. */
const TAG = 'rdctl-home';

/** The kernel module's maximum; its transport limits packets to less anyway. */
const MAX_BYTES = 2 ** 30;

const FEATURE = '9p';

/** QEMU's own 9p device, which accesses files with the rights of QEMU. */
const nineP: Mounter = {
  type: '9p',
  feature: FEATURE,
  // QEMU cannot save its state while the guest has open files there.
  migration: 'unmounted',
  obstacle: ({ features }) =>
    features.includes(FEATURE)
      ? undefined
      : '9p needs a guest image whose kernel has it (rdctl image build --kernel generic)',
  qemuArguments: ({ real }, { mount }) => [
    '-virtfs',
    `local,path=${comma(real)},mount_tag=${TAG},security_model=${mount.securityModel},multidevs=remap,id=home`,
  ],
  async mount({ home, spec, parts, signal }) {
    const { protocolVersion, msizeInKib, cacheMode } = spec.mount;
    const bytes = Math.min(msizeInKib * 1024, MAX_BYTES);
    const options = ['trans=virtio', `version=${protocolVersion}`, `msize=${bytes}`, `cache=${cacheMode}`];
    await parts.guest.run(['modprobe', '9pnet_virtio'], { signal });
    await parts.guest.run(['mount', '-t', '9p', '-o', options.join(','), '--', TAG, home.real], { signal });
  },
};

const TYPE = 'fuse.sshfs';
const MOUNT_MS = 60_000;
const POLL_MS = 200;
/** Attribute cache in seconds: a change on the host must show in the guest. */
const CACHE_S = 1;
/** sshfs versions with this option otherwise refuse links that lead out of the mounted directory. */
const SYMLINKS_OPTION = 'no_contain_symlinks';

/**
 * A host sftp server, connected to sshfs in the guest over a dedicated connection: it may break without affecting engines, and never blocks
 * them. Needs no device and no kernel module.
 */
const reverseSshfs: Mounter = {
  type: 'reverse-sshfs',
  daemon: 'into the guest',
  migration: 'unmounted',
  obstacle: ({ sftpServer }) =>
    sftpServer === undefined
      ? 'reverse-sshfs needs sftp-server (apt-get install --no-install-recommends openssh-sftp-server)'
      : undefined,
  qemuArguments: () => [],
  async mount(work) {
    const { home, facts, parts, signal } = work;
    const { places, guest, logFile, environment, port } = parts;
    const { stdout } = await guest.run(['sshfs', '--help'], { accept: [0, 1], signal });
    const options = ['passive', 'allow_other', `fsname=${TAG}`, `dcache_timeout=${CACHE_S}`];
    if (stdout.includes(SYMLINKS_OPTION)) options.push(SYMLINKS_OPTION);
    const words = ['sshfs', `:${home.real}`, home.real, '-f', '-o', options.join(',')];
    await startDaemon({
      argv: ownConnection(places, await port(), words),
      partner: [facts.sftpServer ?? 'sftp-server', '-e', '-l', 'ERROR'],
      recordFile: places.homeDaemon,
      logFile,
      env: environment,
    });
    await waitUntilServing(work, {
      isReady: () => isMounted(work),
      limitMs: MOUNT_MS,
      pollMs: POLL_MS,
      failure: (ended) => {
        const why = ended ? 'its connection closed' : `it did not appear within ${MOUNT_MS / 1000} s`;
        return `${home.real} could not be mounted in the machine: ${why}`;
      },
      advice: `See ${logFile}.`,
    });
  },
};

async function isMounted({ home, parts, signal }: MountWork): Promise<boolean> {
  const { stdout } = await parts.guest.run(['cat', '/proc/self/mountinfo'], { signal });
  return parseMounts(stdout).some(({ point, type }) => point === home.real && type === TYPE);
}

interface ServingWait {
  isReady(): Promise<boolean>;
  limitMs: number;
  pollMs: number;
  /** `ended`: the program has exited; else the time is up. */
  failure(ended: boolean): string;
  advice: string;
}

/** Waits for the daemon. @throws RdError `ERR_DRIVER_FAILED` with the end of its log. */
async function waitUntilServing({ parts, signal }: MountWork, wait: ServingWait): Promise<void> {
  const { places, clock, logFile } = parts;
  const deadline = clock.now() + wait.limitMs;
  while (!(await wait.isReady())) {
    const ended = (await findDaemon(places.homeDaemon)).state !== 'running';
    if (ended || clock.now() >= deadline) {
      const { failure, advice } = wait;
      throw new RdError('ERR_DRIVER_FAILED', failure(ended), { details: await tailOf(logFile), advice });
    }
    await clock.sleep(wait.pollMs, signal);
  }
}

const READY_MS = 20_000;
const READY_POLL_MS = 50;
const MEMORY = 'home-memory';

/** A host program that serves files to the guest through shared guest memory. */
const virtiofs: Mounter = {
  type: 'virtiofs',
  daemon: 'on this host',
  migration: 'blocked',
  obstacle({ virtiofsd, isRoot }) {
    if (virtiofsd === undefined) return 'virtiofs needs virtiofsd, which is not installed';
    return virtiofsd.dialect === 'qemu' && !isRoot ? `virtiofs needs root, because ${virtiofsd.path} does` : undefined;
  },
  qemuArguments: (_, { memoryGiB }, { homeSocket }) => [
    '-object',
    `memory-backend-memfd,id=${MEMORY},size=${memoryGiB}G,share=on`,
    '-machine',
    `memory-backend=${MEMORY}`,
    '-chardev',
    `socket,id=home,path=${comma(homeSocket)}`,
    '-device',
    `vhost-user-fs-pci,chardev=home,tag=${TAG}`,
  ],
  async begin(work) {
    const { home, facts, parts } = work;
    const { places, logFile, environment } = parts;
    await rm(places.homeSocket, { force: true });
    await startDaemon({
      argv: virtiofsdArguments(facts, home.real, places.homeSocket),
      recordFile: places.homeDaemon,
      logFile,
      env: environment,
    });
    await waitUntilServing(work, {
      isReady: () => isThere(places.homeSocket),
      limitMs: READY_MS,
      pollMs: READY_POLL_MS,
      failure: () => 'virtiofsd did not become ready',
      advice: `See ${logFile}, or choose another virtualMachine.mount.type.`,
    });
  },
  async mount({ home, parts, signal }) {
    await parts.guest.run(['mount', '-t', 'virtiofs', '--', TAG, home.real], { signal });
  },
};

/** Pure. The C and the Rust virtiofsd take different options. */
export function virtiofsdArguments({ virtiofsd, isRoot }: HostFacts, path: string, socket: string): string[] {
  const program = virtiofsd?.path ?? 'virtiofsd';
  if (virtiofsd?.dialect === 'rust') {
    // Only root can confine it to the directory; without that it still follows no link out of it.
    const sandbox = isRoot ? 'namespace' : 'none';
    return [program, `--socket-path=${socket}`, `--shared-dir=${path}`, `--sandbox=${sandbox}`, '--announce-submounts'];
  }
  // A comma ends an option there, and a backslash escapes.
  const source = path.replaceAll(/[\\,]/g, '\\$&');
  return [program, '-f', `--socket-path=${socket}`, '-o', `source=${source}`, '-o', 'announce_submounts'];
}

/** Every mount type. */
export const MOUNTERS: Readonly<Record<MountType, Mounter>> = {
  'reverse-sshfs': reverseSshfs,
  '9p': nineP,
  virtiofs,
};

/** Pure: the image feature that a mount type requires, if any. */
export function featureFor({ mount }: Pick<MachineSpec, 'mount'>): string | undefined {
  return isMountType(mount.type) ? MOUNTERS[mount.type].feature : undefined;
}
