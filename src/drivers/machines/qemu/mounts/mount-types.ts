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
import type { Confine } from '../confine/confinement.ts';
import type { Connection } from '../guest.ts';
import { type QemuPlaces, sharePlaces } from '../places.ts';
import { ownConnection } from '../ssh.ts';
import type { Share } from './directories.ts';
import type { HostFacts } from './host-facts.ts';

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
  confine: Confine;
  /** Returns the port of 127.0.0.1 that leads to the guest's ssh. */
  port(): Promise<number>;
}

export interface MountWork {
  share: Share;
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
  /** Returns the reason that the host or its images do not support the type, as a clause; undefined if they do. Pure. */
  obstacle(facts: HostFacts): string | undefined;
  /**
   * The programs of this host that the type needs. `on this host`: one that must run before QEMU; `into the guest`: one that mounts; absent if there
   * is none.
   */
  readonly daemon?: 'on this host' | 'into the guest';
  /** When QEMU can save its state. `unmounted`: only while nothing is mounted in the guest. */
  readonly migration: 'free' | 'unmounted' | 'blocked';
  /** Returns the QEMU arguments for all shares, of which there is at least one. Pure. */
  qemuArguments(shares: readonly Share[], spec: MachineSpec, places: QemuPlaces): string[];
  /** Starts the host program and waits until QEMU can use it. */
  begin?(work: MountWork): Promise<void>;
  /** Mounts in the guest. The mount point exists and is empty. */
  mount(work: MountWork): Promise<void>;
}

/** Returns the name of a share for QEMU and the guest. */
function tagOf({ id }: Share): string {
  return `rdctl-${id}`;
}

/** Returns the mount option that also refuses writes in the guest, with the error that programs expect. */
function accessOption({ mode }: Share): 'ro' | 'rw' {
  return mode === 'read-only' ? 'ro' : 'rw';
}

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
  qemuArguments: (shares, { mount }) =>
    shares.flatMap((share) => {
      const { id, real, mode } = share;
      const access = mode === 'read-only' ? ',readonly=on' : '';
      const options = `security_model=${mount.securityModel},multidevs=remap${access}`;
      return ['-virtfs', `local,path=${comma(real)},mount_tag=${tagOf(share)},${options},id=${id}`];
    }),
  async mount({ share, spec, parts, signal }) {
    const { protocolVersion, msizeInKib, cacheMode } = spec.mount;
    const bytes = Math.min(msizeInKib * 1024, MAX_BYTES);
    const transport = ['trans=virtio', `version=${protocolVersion}`, `msize=${bytes}`, `cache=${cacheMode}`];
    const options = [...transport, accessOption(share)].join(',');
    await parts.guest.run(['modprobe', '9pnet_virtio'], { signal });
    await parts.guest.run(['mount', '-t', '9p', '-o', options, '--', tagOf(share), share.real], { signal });
  },
};

const TYPE = 'fuse.sshfs';
const MOUNT_MS = 60_000;
const POLL_MS = 200;
/** Attribute cache in seconds: a change on the host must soon show in the guest. */
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
    const { share, facts, parts, signal } = work;
    const { places, guest, logFile, environment, confine, port } = parts;
    const { stdout } = await guest.run(['sshfs', '--help'], { accept: [0, 1], signal });
    const cache = `dcache_timeout=${CACHE_S}`;
    const options = ['passive', 'allow_other', accessOption(share), `fsname=${tagOf(share)}`, cache];
    if (stdout.includes(SYMLINKS_OPTION)) options.push(SYMLINKS_OPTION);
    const words = ['sshfs', `:${share.real}`, share.real, '-f', '-o', options.join(',')];
    const readOnly = share.mode === 'read-only' ? ['-R'] : [];
    const server = [facts.sftpServer ?? 'sftp-server', ...readOnly, '-e', '-l', 'ERROR'];
    const { within } = await confine.wrap(server, { shares: [share] }, 'partner');
    await startDaemon({
      argv: ownConnection(places, await port(), words),
      partner: [...within, ...server],
      recordFile: sharePlaces(places, share.id).daemon,
      logFile,
      env: environment,
    });
    await waitUntilServing(work, {
      isReady: () => isMounted(work),
      limitMs: MOUNT_MS,
      pollMs: POLL_MS,
      failure: (ended) => {
        const why = ended ? 'its connection closed' : `it did not appear within ${MOUNT_MS / 1000} s`;
        return `${share.real} could not be mounted in the machine: ${why}`;
      },
      advice: `See ${logFile}.`,
    });
  },
};

async function isMounted({ share, parts, signal }: MountWork): Promise<boolean> {
  const { stdout } = await parts.guest.run(['cat', '/proc/self/mountinfo'], { signal });
  return parseMounts(stdout).some(({ point, type }) => point === share.real && type === TYPE);
}

interface ServingWait {
  isReady(): Promise<boolean>;
  limitMs: number;
  pollMs: number;
  /** Returns the message of the failure. `ended`: the program has exited; otherwise the time is up. */
  failure(ended: boolean): string;
  advice: string;
}

/** Waits for the daemon. @throws RdError `ERR_DRIVER_FAILED` with the end of its log. */
async function waitUntilServing({ share, parts, signal }: MountWork, wait: ServingWait): Promise<void> {
  const { places, clock, logFile } = parts;
  const deadline = clock.now() + wait.limitMs;
  while (!(await wait.isReady())) {
    const ended = (await findDaemon(sharePlaces(places, share.id).daemon)).state !== 'running';
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
  qemuArguments: (shares, { memoryGiB }, places) => [
    '-object',
    `memory-backend-memfd,id=${MEMORY},size=${memoryGiB}G,share=on`,
    '-machine',
    `memory-backend=${MEMORY}`,
    ...shares.flatMap((share) => [
      '-chardev',
      `socket,id=${share.id},path=${comma(sharePlaces(places, share.id).socket)}`,
      '-device',
      `vhost-user-fs-pci,chardev=${share.id},tag=${tagOf(share)}`,
    ]),
  ],
  async begin(work) {
    const { share, facts, parts } = work;
    const { places, logFile, environment, confine } = parts;
    const { socket, daemon } = sharePlaces(places, share.id);
    await rm(socket, { force: true });
    const command = virtiofsdCommand(facts, share, socket);
    // The virtiofsd of root has a sandbox of its own, which shows it the directory only.
    const wrapper = facts.isRoot
      ? {}
      : await confine.wrap(command.argv, { writes: [places.run], shares: [share] }, 'daemon');
    await startDaemon({
      ...command,
      ...wrapper,
      recordFile: daemon,
      logFile,
      env: environment,
    });
    await waitUntilServing(work, {
      isReady: () => isThere(socket),
      limitMs: READY_MS,
      pollMs: READY_POLL_MS,
      failure: () => 'virtiofsd did not become ready',
      advice: `See ${logFile}, or choose another virtualMachine.mount.type.`,
    });
  },
  async mount({ share, parts, signal }) {
    const words = ['mount', '-t', 'virtiofs', '-o', accessOption(share), '--', tagOf(share), share.real];
    await parts.guest.run(words, { signal });
  },
};

/** `$1`: a directory, which the program that follows sees as read-only, in a mount namespace of its own. */
const READ_ONLY_SCRIPT = 'set -e; mount --bind -- "$1" "$1"; mount -o remount,bind,ro -- "$1"; shift; exec "$@"';

/**
 * Returns the command of virtiofsd. The C and the Rust program take different options. `within`: a wrapper for a read-only share, because not every
 * release has an option for it. Without root only the guest refuses writes. Pure.
 */
export function virtiofsdCommand({ virtiofsd, isRoot }: HostFacts, { real, mode }: Share, socket: string) {
  const program = virtiofsd?.path ?? 'virtiofsd';
  const readOnly = ['unshare', '--mount', 'sh', '-c', READ_ONLY_SCRIPT, 'sh', real];
  const wrapper = mode === 'read-only' && isRoot ? { within: readOnly } : {};
  if (virtiofsd?.dialect === 'rust') {
    // Only root can confine virtiofsd to the directory; without that it still follows no link out of it.
    const sandbox = isRoot ? 'namespace' : 'none';
    const options = [`--socket-path=${socket}`, `--shared-dir=${real}`, `--sandbox=${sandbox}`, '--announce-submounts'];
    return { argv: [program, ...options], ...wrapper };
  }
  // A comma ends an option there, and a backslash escapes.
  const source = real.replaceAll(/[\\,]/g, '\\$&');
  const options = [`--socket-path=${socket}`, '-o', `source=${source}`, '-o', 'announce_submounts'];
  return { argv: [program, '-f', ...options], ...wrapper };
}

/** Every mount type. */
export const MOUNTERS: Readonly<Record<MountType, Mounter>> = {
  'reverse-sshfs': reverseSshfs,
  '9p': nineP,
  virtiofs,
};

/** Returns the image feature that a mount type requires, if any. Pure. */
export function featureFor({ mount }: Pick<MachineSpec, 'mount'>): string | undefined {
  return isMountType(mount.type) ? MOUNTERS[mount.type].feature : undefined;
}
