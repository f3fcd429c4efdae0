import { isObject, parseJson } from '../../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../../os/atomic-file.ts';
import { findDaemon, stopDaemon } from '../../../../os/daemon.ts';
import type { DriverContext, MachineSpec, SharedDirectory } from '../../../driver.ts';
import { parseMounts } from '../../shared/mountinfo.ts';
import { type HostFacts, homeFacts, homeToShare, type SharedHome } from './host-facts.ts';
import { isMountType, MOUNTERS, type MounterParts, type MountType, type MountWork } from './mount-types.ts';

const END_MS = 2_000;
const SLOW_MS = 60_000;

export interface GuestMountsParts extends MounterParts {
  /** The value of `HOME` of the service. */
  home: string | undefined;
  /** Our own directories, hidden from the guest. */
  own: readonly string[];
  /** Inspects this host. */
  facts(): Promise<HostFacts>;
  log: DriverContext['log'];
}

/** The observed state of a directory that a machine was started with. */
interface MountObservation {
  shared: SharedDirectory;
  /** What is missing and `mount` restores, as a clause. */
  repair?: string;
  /** What only a restart restores, as a clause. */
  broken?: string;
}

/** The host directory in one machine. */
export interface GuestMounts {
  /**
   * Before QEMU starts: chooses what to share, starts what the host needs for it, and returns the QEMU arguments. Where sharing is
   * unsupported, the machine starts without it and reports that.
   */
  begin(spec: MachineSpec, signal: AbortSignal): Promise<string[]>;
  /** In a guest that responds. Idempotent. Clears stale mounts first. */
  mount(spec: MachineSpec, signal: AbortSignal): Promise<void>;
  /** Unmounts it in the guest before a state is saved. `mount` restores it, also after a resume. */
  unmount(signal: AbortSignal): Promise<void>;
  observe(): Promise<MountObservation>;
  /** Why a running machine cannot save its state, even unmounted, as a clause; undefined when it can. */
  blocksMigration(): Promise<string | undefined>;
  /** After QEMU has ended: stops its helpers on this host. */
  end(signal: AbortSignal): Promise<void>;
}

export function guestMounts(parts: GuestMountsParts): GuestMounts {
  const { places, guest, clock, home, own, facts, log } = parts;
  const file = places.home;

  async function chooseHome(spec: MachineSpec, found: HostFacts): Promise<HomeRecord> {
    const shared = homeToShare(await homeFacts(home, own));
    if ('missing' in shared) return shared;
    const { type } = spec.mount;
    if (!isMountType(type)) return { missing: `unknown mount type ${JSON.stringify(type)}` };
    const obstacle = MOUNTERS[type].obstacle(found);
    return obstacle === undefined ? { ...shared, type, mounted: false } : { missing: obstacle };
  }

  const mountWork = (shared: SharedHome, spec: MachineSpec, found: HostFacts, signal: AbortSignal): MountWork => ({
    home: shared,
    spec,
    facts: found,
    parts,
    signal,
  });

  /** Removes every mount at the mount point, including those whose clients wait for a dead server. */
  async function clearMounts({ real }: SharedHome, signal: AbortSignal): Promise<void> {
    const { stdout } = await guest.run(['cat', '/proc/self/mountinfo'], { signal });
    for (const { type, minor } of parseMounts(stdout).filter(({ point }) => point === real)) {
      const connections = type.startsWith('fuse.') ? [String(minor)] : [];
      await guest.run(['sh', '-s', '--', real, ...connections], { input: CLEAR_SCRIPT, signal });
    }
  }

  async function unmountHome(record: SharedHomeRecord, signal: AbortSignal): Promise<void> {
    if (MOUNTERS[record.type].daemon === 'into the guest') {
      await stopDaemon(places.homeDaemon, { graceMs: END_MS, clock, signal });
    }
    await clearMounts(record, signal);
    await writeHomeRecord(file, { ...record, mounted: false });
  }

  async function mount(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const record = await readHomeRecord(file);
    if (record === undefined || 'missing' in record) return;
    const mounter = MOUNTERS[record.type];
    await unmountHome(record, signal);
    const place = await guest.run(['sh', '-s', '--', record.real, record.path], {
      input: PLACE_SCRIPT,
      accept: [0, REFUSED],
      signal,
    });
    if (place.exitCode === REFUSED) {
      const missing = place.stdout.trim();
      log('warn', 'the home directory is not mounted in the machine', { reason: missing });
      return writeHomeRecord(file, { missing });
    }
    try {
      await mounter.mount(mountWork(record, spec, await facts(), signal));
      await guest.run(['sh', '-s', '--', ...record.hidden], { input: HIDE_SCRIPT, timeoutMs: SLOW_MS, signal });
    } catch (error) {
      // No mount is better than exposing hidden directories.
      await unmountHome(record, signal).catch(() => undefined);
      throw error;
    }
    await writeHomeRecord(file, { ...record, mounted: true });
  }

  return {
    async begin(spec, signal) {
      await stopDaemon(places.homeDaemon, { graceMs: END_MS, clock, signal });
      const found = await facts();
      const record = await chooseHome(spec, found);
      await writeHomeRecord(file, record);
      if ('missing' in record) {
        log('warn', 'the home directory is not mounted in the machine', { reason: record.missing });
        return [];
      }
      const mounter = MOUNTERS[record.type];
      await mounter.begin?.(mountWork(record, spec, found, signal));
      return mounter.qemuArguments(record, spec, places);
    },
    mount,
    async unmount(signal) {
      const record = await readHomeRecord(file);
      if (record && 'real' in record) await unmountHome(record, signal);
    },
    async observe() {
      const record = await readHomeRecord(file);
      if (record === undefined) return { shared: { missing: 'the machine was started without a shared directory' } };
      if ('missing' in record) return { shared: { missing: record.missing } };
      const shared = { path: record.path, by: record.type };
      const { daemon } = MOUNTERS[record.type];
      const runs = daemon === undefined || (await findDaemon(places.homeDaemon)).state === 'running';
      if (!runs && daemon === 'on this host')
        return { shared, broken: `virtiofsd, which serves ${record.path}, has exited` };
      return record.mounted && runs
        ? { shared }
        : { shared, repair: `${record.path} of this host is not mounted in the machine` };
    },
    async blocksMigration() {
      const record = await readHomeRecord(file);
      if (record === undefined || 'missing' in record) return undefined;
      return MOUNTERS[record.type].migration === 'blocked'
        ? `a machine with ${record.type} cannot be frozen`
        : undefined;
    },
    async end(signal) {
      await stopDaemon(places.homeDaemon, { graceMs: END_MS, clock, signal });
    },
  };
}

interface SharedHomeRecord extends SharedHome {
  type: MountType;
  /** Whether it has been mounted since the guest started. */
  mounted: boolean;
}

/** What the machine was started with, or why it shares nothing, as a clause: devices stay fixed, whatever a newer service finds. */
export type HomeRecord = SharedHomeRecord | { missing: string };

/** Undefined when there is none or it cannot be parsed. */
export async function readHomeRecord(file: string): Promise<HomeRecord | undefined> {
  const text = await readIfThere(file);
  return text === undefined ? undefined : parsed(parseJson(text));
}

async function writeHomeRecord(file: string, record: HomeRecord): Promise<void> {
  await writeFileAtomic(file, `${JSON.stringify(record, undefined, 2)}\n`);
}

function parsed(value: unknown): HomeRecord | undefined {
  if (!isObject(value)) return undefined;
  const { type, path, real, hidden, mounted, missing } = value;
  if (typeof missing === 'string') return { missing };
  if (!isMountType(type) || typeof path !== 'string' || typeof real !== 'string' || !Array.isArray(hidden))
    return undefined;
  const places = hidden.filter((place) => typeof place === 'string');
  return { type, path, real, hidden: places, mounted: mounted === true };
}

/** Guest shell scripts; all input is passed as arguments. */

/** Exit status of the script below when the directory cannot be mounted at that path; retrying does not help. */
export const REFUSED = 3;

/**
 * `$1`: mount point of the host directory, `$2`: its alias on the host, or the same path. Creates the mount point. Leaves a non-empty guest
 * directory alone.
 */
export const PLACE_SCRIPT = `set -eu
umask 022
real=$1 home=$2
refuse() { printf '%s\\n' "$1"; exit ${REFUSED}; }
[ "$(readlink -m -- "$real")" = "$real" ] || refuse "the guest has a link on the way to $real"
[ ! -e "$real" ] || [ -d "$real" ] || refuse "the guest has a file at $real"
mkdir -p -- "$real"
[ -z "$(ls -A -- "$real")" ] || refuse "the guest has something of its own in $real"
[ "$home" = "$real" ] && exit 0
if [ -d "$home" ] && [ ! -L "$home" ]; then rmdir -- "$home" 2>/dev/null || refuse "the guest has something of its own in $home"; fi
if [ -e "$home" ] && [ ! -L "$home" ]; then refuse "the guest has a file at $home"; fi
mkdir -p -- "$(dirname -- "$home")"
ln -sfn -- "$real" "$home"
`;

/** Arguments: directories to unmount. */
export const HIDE_SCRIPT = `set -eu
for each; do
  [ -d "$each" ] || continue
  mount -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=0555 rdctl-hidden "$each"
done
`;

/** `$1`: a mount with everything mounted in it; the rest: stale FUSE connections to abort, so that nothing blocks on them. */
export const CLEAR_SCRIPT = `set -u
point=$1
shift
for each; do
  abort=/sys/fs/fuse/connections/$each/abort
  if [ -e "$abort" ]; then echo 1 > "$abort"; fi
done
umount --lazy --no-canonicalize -- "$point"
`;
