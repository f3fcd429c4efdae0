import { isDeepStrictEqual } from 'node:util';
import { RdError } from '../../../../errors.ts';
import { defined } from '../../../../json.ts';
import { findDaemon, stopDaemon } from '../../../../os/daemon.ts';
import type { DriverContext, MachineSpec, SharedDirectories } from '../../../driver.ts';
import { parseMounts } from '../../shared/mountinfo.ts';
import { shareDaemons, sharePlaces } from '../places.ts';
import type { ChangeNotices } from './change-notices.ts';
import { directoriesToShare, directoryFacts, isWithin, type Share } from './directories.ts';
import { refuseInUse } from './directory-use.ts';
import { CLEAR_SCRIPT, HIDE_SCRIPT, PLACE_SCRIPT, REFUSED, UNLINK_SCRIPT } from './guest-scripts.ts';
import type { HostFacts } from './host-facts.ts';
import { isMountType, MOUNTERS, type MounterParts, type MountWork } from './mount-types.ts';
import {
  type DirectoryRecord,
  isShared,
  type MountRecord,
  type MountsRecord,
  readMountsRecord,
  writeMountsRecord,
} from './record.ts';
import {
  leavingShares,
  notifying,
  openedByQemu,
  placeOf,
  sharedDirectories,
  withInner,
  withMounted,
} from './share-relations.ts';

const END_MS = 2_000;
const SLOW_MS = 60_000;

export interface GuestMountsParts extends MounterParts {
  /** The value of `HOME` of the service. */
  home: string | undefined;
  /** Our own directories, hidden from the guest. */
  own: readonly string[];
  /** Inspects this host. */
  facts(): Promise<HostFacts>;
  notices: ChangeNotices;
  log: DriverContext['log'];
}

/** The observed state of the directories of a machine. */
interface MountsObservation {
  shared: SharedDirectories;
  /** `mounts` of the spec that the machine runs with. */
  asked: MachineSpec['mounts'];
  /** A missing part that `mount` restores, as a clause. */
  repair?: string;
  /** A problem that only a restart solves, as a clause. */
  broken?: string;
  /** A degradation, as a clause. */
  flaw?: string;
}

/** Directories of this host in one machine. */
export interface GuestMounts {
  /**
   * Called before QEMU starts: chooses the directories to share, starts the host programs for them, and returns the QEMU arguments. If sharing is
   * unsupported, the machine starts without it and reports that.
   */
  begin(spec: MachineSpec, signal: AbortSignal): Promise<string[]>;
  /** Mounts missing directories in a guest that responds. Idempotent. Clears stale mounts first. A failure does not prevent the others. */
  mount(spec: MachineSpec, signal: AbortSignal): Promise<void>;
  /**
   * Changes the directories of a running guest to those of the spec, and mounts missing ones. Idempotent.
   * @throws RdError `ERR_DRIVER_FAILED` for a directory in use that would go away or change, before anything has changed; and the errors of `mount`.
   */
  change(spec: MachineSpec, signal: AbortSignal): Promise<void>;
  /** Unmounts everything in the guest before a state is saved. `mount` restores it, even after a resume. */
  unmount(signal: AbortSignal): Promise<void>;
  observe(): Promise<MountsObservation>;
  /** Returns the directories that QEMU itself opens for the guest. */
  opened(): Promise<Share[]>;
  /** Returns the records of programs of this host that hold a connection of their own to the guest's ssh. */
  connections(): Promise<string[]>;
  /** Returns the reason that a running machine cannot save its state, even unmounted, as a clause, or undefined if it can. */
  blocksMigration(): Promise<string | undefined>;
  /** Called after QEMU has ended: stops its helpers on this host. */
  end(signal: AbortSignal): Promise<void>;
}

const NOTHING: MountsRecord = { asked: {}, directories: [] };

/** True if the directories of a running machine can change without a restart: with other types they are devices of QEMU. */
export function changesLive({ mount }: Pick<MachineSpec, 'mount'>): boolean {
  return isMountType(mount.type) && MOUNTERS[mount.type].daemon === 'into the guest';
}

export function guestMounts(parts: GuestMountsParts): GuestMounts {
  const { places, guest, clock, home, own, facts, notices, log } = parts;
  const file = places.shares;
  const daemonOf = ({ id }: Share) => sharePlaces(places, id).daemon;

  async function choose(spec: MachineSpec, found: HostFacts): Promise<MountsRecord> {
    const { mounts, mount } = spec;
    const choices = directoriesToShare(await directoryFacts(home, mounts, own));
    const obstacle = isMountType(mount.type)
      ? MOUNTERS[mount.type].obstacle(found)
      : `unknown mount type ${JSON.stringify(mount.type)}`;
    const directories = choices.map((choice): DirectoryRecord => {
      if (!('real' in choice)) return choice;
      return obstacle === undefined ? { ...choice, mounted: false } : { path: choice.path, missing: obstacle };
    });
    for (const directory of directories) warnIfMissing(directory);
    return { ...(isMountType(mount.type) ? { type: mount.type } : {}), asked: mounts, directories };
  }

  function warnIfMissing(directory: DirectoryRecord): void {
    if (!('missing' in directory)) return;
    const { path, missing } = directory;
    log('warn', 'a directory is not mounted in the machine', { path, reason: missing });
  }

  async function update(share: Share, changed: DirectoryRecord): Promise<void> {
    const record = await readMountsRecord(file);
    if (record === undefined) return;
    const directories = record.directories.map((each) => (isShared(each) && each.id === share.id ? changed : each));
    await writeMountsRecord(file, { ...record, directories });
  }

  const workOf = (share: Share, spec: MachineSpec, found: HostFacts, signal: AbortSignal): MountWork => ({
    share,
    spec,
    facts: found,
    parts,
    signal,
  });

  const mountTable = async (signal: AbortSignal) =>
    parseMounts((await guest.run(['cat', '/proc/self/mountinfo'], { signal })).stdout);

  /** Removes every mount at the mount point, including those whose clients wait for a dead server. */
  async function clearMounts({ real }: Share, signal: AbortSignal): Promise<void> {
    for (const { type, minor } of (await mountTable(signal)).filter(({ point }) => point === real)) {
      const connections = type.startsWith('fuse.') ? [String(minor)] : [];
      await guest.run(['sh', '-s', '--', real, ...connections], { input: CLEAR_SCRIPT, signal });
    }
  }

  async function unmountShare(record: MountsRecord, share: MountRecord, signal: AbortSignal): Promise<void> {
    if (isInGuest(record)) await stopDaemon(daemonOf(share), { graceMs: END_MS, clock, signal });
    await clearMounts(share, signal);
    await update(share, { ...share, mounted: false });
  }

  const isRunning = async (share: Share) => (await findDaemon(daemonOf(share))).state === 'running';

  async function isHealthy(record: MountsRecord, share: MountRecord): Promise<boolean> {
    return share.mounted && (!isInGuest(record) || (await isRunning(share)));
  }

  async function place(share: MountRecord, shares: readonly Share[], signal: AbortSignal): Promise<string | undefined> {
    const { real, path } = share;
    const words = [real, path, placeOf(real, share, shares), placeOf(path, share, shares)];
    const { exitCode, stdout } = await guest.run(['sh', '-s', '--', ...words], {
      input: PLACE_SCRIPT,
      accept: [0, REFUSED],
      signal,
    });
    return exitCode === REFUSED ? stdout.trim() : undefined;
  }

  /**
   * Mounts a share.
   * @returns true if it is mounted.
   */
  async function mountShare(
    share: MountRecord,
    spec: MachineSpec,
    found: HostFacts,
    signal: AbortSignal,
  ): Promise<boolean> {
    const record = await readMountsRecord(file);
    if (record?.type === undefined) return false;
    const missing = await place(share, record.directories.filter(isShared), signal);
    if (missing !== undefined) {
      const refused = { path: share.path, missing };
      warnIfMissing(refused);
      await update(share, refused);
      return false;
    }
    try {
      await MOUNTERS[record.type].mount(workOf(share, spec, found, signal));
      const { hidden } = share;
      if (hidden.length > 0) {
        await guest.run(['sh', '-s', '--', ...hidden], { input: HIDE_SCRIPT, timeoutMs: SLOW_MS, signal });
      }
    } catch (error) {
      // No mount is better than exposing hidden directories.
      await unmountShare(record, share, signal).catch(() => undefined);
      throw error;
    }
    await update(share, { ...share, mounted: true });
    return true;
  }

  async function mount(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const record = await readMountsRecord(file);
    if (record === undefined) return;
    const shares = record.directories.filter(isShared);
    const broken: MountRecord[] = [];
    for (const share of shares) if (!(await isHealthy(record, share))) broken.push(share);
    const affected = withInner(broken, shares);
    // Innermost first.
    for (const share of affected.toReversed()) await unmountShare(record, share, signal);
    const found = await facts();
    const failures: { share: Share; error: unknown }[] = [];
    for (const share of affected) {
      // A directory inside an unmounted share would be in the way of that share later.
      if (failures.some(({ share: outer }) => isWithin(share.real, outer.real))) continue;
      try {
        await mountShare(share, spec, found, signal);
      } catch (error) {
        signal.throwIfAborted();
        failures.push({ share, error });
      }
    }
    const [first] = failures;
    if (first !== undefined) throw first.error;
  }

  async function end(signal: AbortSignal): Promise<void> {
    notices.stop();
    for (const daemon of await shareDaemons(places)) await stopDaemon(daemon, { graceMs: END_MS, clock, signal });
  }

  return {
    async begin(spec, signal) {
      await end(signal);
      const found = await facts();
      const record = await choose(spec, found);
      await writeMountsRecord(file, record);
      const shares = record.directories.filter(isShared);
      if (record.type === undefined || shares.length === 0) return [];
      const mounter = MOUNTERS[record.type];
      for (const share of shares) await mounter.begin?.(workOf(share, spec, found, signal));
      return mounter.qemuArguments(shares, spec, places);
    },
    mount,
    async change(spec, signal) {
      const record = (await readMountsRecord(file)) ?? NOTHING;
      if (!isDeepStrictEqual(record.asked, spec.mounts)) {
        if (!changesLive(spec))
          throw new RdError('ERR_DRIVER_FAILED', 'a change of mounts needs a restart of the machine');
        notices.stop();
        const next = await choose(spec, await facts());
        const shares = record.directories.filter(isShared);
        const leaving = leavingShares(shares, next.directories);
        if (leaving.length > 0) await refuseInUse(leaving, { guest, table: await mountTable(signal), signal });
        for (const share of leaving.toReversed()) {
          await unmountShare(record, share, signal);
          if (share.path === share.real || placeOf(share.path, share, shares) === 'share') continue;
          await guest.run(['sh', '-s', '--', share.path, share.real], { input: UNLINK_SCRIPT, signal });
        }
        const staying = shares.filter((share) => !leaving.includes(share));
        await writeMountsRecord(file, { ...next, directories: withMounted(next.directories, staying) });
      }
      await mount(spec, signal);
    },
    async unmount(signal) {
      notices.stop();
      const record = await readMountsRecord(file);
      if (record === undefined) return;
      for (const share of record.directories.filter(isShared).toReversed()) await unmountShare(record, share, signal);
    },
    async observe() {
      const record = await readMountsRecord(file);
      if (record === undefined) {
        const missing = 'the machine was started without a shared directory';
        return { shared: { missing, mounts: [] }, asked: {} };
      }
      const { asked } = record;
      const shared = sharedDirectories(record);
      const shares = record.directories.filter(isShared);
      if (record.type !== undefined && MOUNTERS[record.type].daemon === 'on this host') {
        for (const share of shares) {
          if (await isRunning(share)) continue;
          return { shared, asked, broken: `virtiofsd, which serves ${share.path}, has exited` };
        }
      }
      for (const share of shares) {
        if (await isHealthy(record, share)) continue;
        return { shared, asked, repair: `${share.path} of this host is not mounted in the machine` };
      }
      notices.follow(notifying(shares));
      const flaw = notices.flaw();
      return { shared, asked, ...defined({ flaw }) };
    },
    opened: async () => openedByQemu(await readMountsRecord(file)),
    async connections() {
      const record = await readMountsRecord(file);
      return record !== undefined && isInGuest(record) ? record.directories.filter(isShared).map(daemonOf) : [];
    },
    async blocksMigration() {
      const record = await readMountsRecord(file);
      if (record?.type === undefined || !record.directories.some(isShared)) return undefined;
      const { type } = record;
      return MOUNTERS[type].migration === 'blocked' ? `a machine with ${type} cannot be frozen` : undefined;
    },
    end,
  };
}

function isInGuest({ type }: MountsRecord): boolean {
  return type !== undefined && MOUNTERS[type].daemon === 'into the guest';
}
