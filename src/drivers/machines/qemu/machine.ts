import { isDeepStrictEqual } from 'node:util';
import { RdError } from '../../../errors.ts';
import { defined } from '../../../json.ts';
import { findDaemon } from '../../../os/daemon.ts';
import type { MachineDriver, MachinePause, MachineSpec, MachineStart, MachineStatus } from '../../driver.ts';
import { createGuestClock } from './guest.ts';
import { resumeFrom } from './halts.ts';
import { adjustMachine } from './live/adjust.ts';
import { growthWatch } from './live/disk-growth.ts';
import { isUnfinished, readFacts, roomOf, runningSpec } from './live/facts.ts';
import { HALTED, PAUSED, SILENT, WRITE_FAILED } from './monitor.ts';
import { changesLive } from './mounts/mounts.ts';
import type { MachineParts } from './parts.ts';
import type { ForwardMethod } from './ports/forwards.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from './record.ts';
import { patience } from './slowness.ts';
import { startMachine } from './start.ts';
import { stopMachine } from './stop.ts';

const WRITE_FAILURE =
  'the guest was halted by a failed disk write, although the disk is not full: the disk of this host is failing, or a quota is exhausted';
const UNFINISHED = 'a change to its memory, processors or disk is incomplete';

export interface QemuMachine extends MachineDriver {
  /** True if the guest has booted completely and QEMU runs. */
  isUp(): Promise<boolean>;
  /** Returns its last start. */
  started(): Promise<MachineStart | undefined>;
  /** Returns the last start of an emulated machine; undefined for others. */
  emulatedStart(): Promise<MachineStart | undefined>;
  /** True if the guest runs and responds. */
  answers(signal: AbortSignal): Promise<boolean>;
}

export interface QemuMachineParts extends Omit<MachineParts, 'guestClock' | 'isAlive'> {
  /** Returns the pause if this process has paused the guest because nobody uses it. */
  pause(): MachinePause | undefined;
}

/** Creates a virtual machine in QEMU. */
export function qemuMachine(input: QemuMachineParts): QemuMachine {
  const { places, guest, clock } = input;
  const parts: MachineParts = {
    ...input,
    guestClock: createGuestClock(guest, clock),
    isAlive: async () => (await findDaemon(places.qemuRecord)).state === 'running',
  };
  const { monitor, guestClock, mounts, ports, hostPorts, isAlive } = parts;
  const growth = growthWatch(guest);
  const silence = patience('machine', clock);
  /** An observation resumed the guest, and its clock is behind. */
  let isClockBehind = false;

  async function observe(signal: AbortSignal): Promise<MachineStatus> {
    const record = await readQemuRecord(places.record);
    if (record === 'damaged') return broken('RecordDamaged', `${places.record} cannot be parsed`);
    if (!(await isAlive())) return { state: record === undefined ? 'absent' : 'off' };
    if (record === undefined || record.power === 'off') {
      return broken('RecordGone', `a QEMU of the machine is running without a record in ${places.record}`);
    }
    if (!record.booted) return broken('StartUnfinished', 'a start or stop of the machine did not complete');
    const status = await statusAfterResume(signal);
    if (status === SILENT) return unresponsive(record, 'NotRunning', 'QEMU does not respond');
    const halted = HALTED[status];
    if (halted === undefined && status !== 'running')
      return broken('NotRunning', `QEMU reports that the guest is ${status}`);
    const facts = await monitor.use((qmp) => readFacts(qmp, signal), signal);
    const directories = await mounts.observe();
    const paused = status === PAUSED ? input.pause() : undefined;
    // Facts of a paused guest's memory are as old as its pause, and still true.
    const factsAt = paused === undefined ? Date.now() : Date.parse(paused.since);
    const on: MachineStatus = {
      state: 'on',
      spec: { ...runningSpec(record.spec, facts), mounts: directories.asked },
      room: roomOf(facts, factsAt / 1000, record.possibleCpus),
      accelerator: record.accelerator,
      ...defined({ emulatedBecause: record.emulatedBecause, started: record.started, flaw: record.flaw }),
    };
    if (paused !== undefined) {
      silence.reset();
      return { ...on, shared: directories.shared, paused };
    }
    if (halted !== undefined) {
      // A halted guest had no time to respond.
      silence.reset();
      return { ...on, halted: true, repair: facts.writeFailed ? WRITE_FAILURE : halted };
    }
    if (directories.broken !== undefined) return broken('SharedDirectoryGone', directories.broken);
    if (!(await guest.isConnected(signal)))
      return unresponsive(record, 'GuestUnreachable', 'the guest does not respond');
    silence.reset();
    ports.watch(forwardMethod(record.spec));
    if (isClockBehind) {
      await guestClock.set(signal);
      isClockBehind = false;
    }
    const unfinished = isUnfinished(record.spec, facts) ? UNFINISHED : undefined;
    const clockOff = (await guestClock.isOff(signal)) ? 'the clock of the guest is wrong' : undefined;
    const filter = await hostPorts.follow(record.spec.hostPorts, signal);
    const unfiltered = 'repair' in filter ? filter.repair : undefined;
    const repair = unfiltered ?? unfinished ?? clockOff ?? directories.repair;
    const { flaw: recorded, ...rest } = on;
    const flaw = record.growing ? await growth.degradation(facts.diskBytes, signal) : (recorded ?? directories.flaw);
    const problems = defined({ flaw, repair });
    return {
      ...rest,
      shared: directories.shared,
      ...('open' in filter ? { openHostPorts: filter.open } : {}),
      ...problems,
    };
  }

  function unresponsive({ started }: QemuRecord, reason: string, message: string): MachineStatus {
    silence.endure(message, started);
    return broken(reason, message);
  }

  /**
   * Returns the run state after a resume. Freed disk space raises no event, so every observation retries, even after the repair attempts are
   * exhausted.
   */
  async function statusAfterResume(signal: AbortSignal): Promise<string> {
    const status = await monitor.status(signal);
    if (status !== WRITE_FAILED) return status;
    const now = await resumeFrom(parts, status, signal);
    isClockBehind ||= now === 'running';
    return now;
  }

  /** Resumes a guest that QEMU halted. */
  async function resumeHalted(signal: AbortSignal): Promise<void> {
    const status = await monitor.status(signal);
    const halted = HALTED[status];
    if (halted === undefined || (await resumeFrom(parts, status, signal)) !== status) return;
    const { writeFailed } = await monitor.use((qmp) => readFacts(qmp, signal), signal);
    throw new RdError('ERR_DRIVER_FAILED', writeFailed ? WRITE_FAILURE : halted, {
      advice: writeFailed
        ? `See the kernel log (dmesg) for disk errors. Repair the disk that holds ${places.data}; the guest then resumes by itself.`
        : `Free up space on the disk that holds ${places.data}; the guest then resumes by itself.`,
    });
  }

  /** Applies live changes to the running guest and restores parts that the last observation found missing. */
  async function adjust(spec: MachineSpec, signal: AbortSignal, progress?: () => void): Promise<void> {
    await resumeHalted(signal);
    if (await guestClock.isOff(signal)) await guestClock.set(signal);
    guestClock.forget();
    const { sshPortForwarder, adminAccess, hostPorts: allowed, pauseAfterMinutes } = spec;
    // Record first: if the service is killed in between, the next observation finishes.
    const { spec: recorded, possibleCpus } = await record({ hostPorts: allowed, pauseAfterMinutes });
    await hostPorts.set(allowed, signal);
    await mounts.change(spec, signal);
    if (recorded.sshPortForwarder !== sshPortForwarder || recorded.adminAccess !== adminAccess) {
      // Record first: if the service is killed in between, the next observation finishes.
      await record({ sshPortForwarder, adminAccess });
      await ports.switchTo(forwardMethod(spec));
    }
    await adjustMachine({ monitor, guest, clock, progress, recorded, possibleCpus, record }, spec, signal);
  }

  /** Records and returns the spec that the machine runs with. `flaw`: the degradation until its file system has grown. */
  async function record(change: Partial<MachineSpec>, adjusted?: true, flaw?: string): Promise<QemuRecord> {
    const known = await readQemuRecord(places.record);
    if (known === undefined || known === 'damaged') {
      throw new RdError('ERR_DRIVER_FAILED', `${places.record} is missing or damaged`);
    }
    const spec = { ...known.spec, ...change };
    if (isDeepStrictEqual(spec, known.spec) && (known.adjusted || !adjusted) && flaw === undefined) return known;
    const next: QemuRecord = { ...known, spec, ...(adjusted ? { adjusted } : {}) };
    // A disk that has grown in the meantime is no longer degraded by its start.
    if (change.diskBytes !== undefined) {
      delete next.flaw;
      delete next.growing;
    }
    if (flaw !== undefined) {
      Object.assign(next, { flaw, growing: true });
      growth.begin();
    }
    await writeQemuRecord(places.record, next);
    return next;
  }

  async function start(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const found = await observe(signal);
    if (found.state === 'on' && satisfies(found.spec, spec)) return adjust(spec, signal);
    if (found.state !== 'absent' && found.state !== 'off') await stopMachine(parts, signal);
    silence.reset();
    growth.begin();
    await startMachine(parts, spec, signal);
  }

  return {
    observe,
    answers: async (signal) => (await monitor.status(signal)) === 'running' && (await guest.isConnected(signal)),
    async started() {
      const record = await readQemuRecord(places.record);
      return record === 'damaged' ? undefined : record?.started;
    },
    async emulatedStart() {
      const record = await readQemuRecord(places.record);
      return record === 'damaged' || record?.accelerator !== 'tcg' ? undefined : record.started;
    },
    async isUp() {
      const record = await readQemuRecord(places.record);
      if (record === undefined || record === 'damaged') return false;
      return record.power === 'on' && record.booted && (await isAlive());
    },
    async perform(step, signal, progress) {
      if (step.do === 'stop') await stopMachine(parts, signal);
      else if (step.do === 'start') await start(step.spec, signal);
      else await adjust(step.spec, signal, progress);
    },
  };
}

function forwardMethod({ sshPortForwarder, adminAccess }: MachineSpec): ForwardMethod {
  return { route: sshPortForwarder ? 'ssh' : 'qemu', binding: adminAccess ? 'all' : 'loopback' };
}

function broken(reason: string, message: string): MachineStatus {
  return { state: 'broken', reason, message };
}

/** True if the running machine needs no restart: some members change live, and a larger disk is accepted. */
function satisfies(running: MachineSpec, desired: MachineSpec): boolean {
  const { sshPortForwarder, adminAccess, hostPorts, pauseAfterMinutes } = desired;
  const diskBytes = Math.max(running.diskBytes, desired.diskBytes);
  const mounts = changesLive(running) ? desired.mounts : running.mounts;
  const live = { sshPortForwarder, adminAccess, hostPorts, pauseAfterMinutes, mounts };
  return sameSpec({ ...running, ...live }, { ...desired, diskBytes });
}

function sameSpec(one: MachineSpec, other: MachineSpec): boolean {
  return isDeepStrictEqual(one, other);
}
