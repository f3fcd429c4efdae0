import { RdError } from '../../../errors.ts';
import { findDaemon } from '../../../process/daemon.ts';
import type { MachineDriver, MachineSpec, MachineStatus } from '../../driver.ts';
import { guestClock } from './guest-clock.ts';
import { HALTED } from './monitor.ts';
import type { MachineParts } from './parts.ts';
import type { WayOut } from './ports/changes.ts';
import { readQemuRecord, writeQemuRecord } from './record.ts';
import { startMachine } from './start.ts';
import { stopMachine } from './stop.ts';

const POLL_MS = 100;
const PATIENCE_MS = 60_000;

export interface QemuMachine extends MachineDriver {
  /** Whether the guest has been started to the end and QEMU is there. */
  isUp(): Promise<boolean>;
  /** Whether the guest goes on and can be talked to. */
  answers(signal: AbortSignal): Promise<boolean>;
}

export type QemuMachineParts = Omit<MachineParts, 'clock' | 'isAlive'>;

/** A virtual machine in QEMU. */
export function qemuMachine(input: QemuMachineParts): QemuMachine {
  const { places, guest, pace } = input;
  const parts: MachineParts = {
    ...input,
    clock: guestClock(guest, pace),
    isAlive: async () => (await findDaemon(places.qemuRecord)).state === 'running',
  };
  const { monitor, clock, ports, isAlive } = parts;
  let unreachableSince: number | undefined;

  async function observe(signal: AbortSignal): Promise<MachineStatus> {
    const record = await readQemuRecord(places.record);
    if (record === undefined) return { state: 'absent' };
    if (record === 'damaged') {
      return { state: 'broken', reason: 'RecordDamaged', message: `${places.record} cannot be understood` };
    }
    if (record.power === 'off' || !(await isAlive())) return { state: 'off' };
    if (!record.booted) return broken('StartUnfinished', 'a start or a stop of the machine was not finished');
    const status = await monitor.status(signal);
    const halted = HALTED[status];
    if (halted !== undefined) return { state: 'on', spec: record.spec, repair: halted };
    if (status !== 'running') return broken('NotRunning', `QEMU says that the guest is ${status}`);
    if (!(await guest.isConnected(signal))) {
      // A busy guest and a dead one look alike for a while, and only one of them is to be ended.
      unreachableSince ??= pace.now();
      if (pace.now() - unreachableSince > PATIENCE_MS) return broken('GuestUnreachable', 'the guest does not answer');
      throw new RdError('ERR_DRIVER_FAILED', 'the guest does not answer', {
        advice: `It is ended and started again when that goes on for ${PATIENCE_MS / 1000} seconds.`,
      });
    }
    unreachableSince = undefined;
    ports.look(wayOut(record.spec));
    const { spec, started } = record;
    const repair = (await clock.isOff(signal)) ? { repair: 'the clock of the guest is not that of this host' } : {};
    return { state: 'on', spec, ...repair, ...(started === undefined ? {} : { started }) };
  }

  /** Brings back what a look has found missing, while the guest goes on. */
  async function repair(signal: AbortSignal): Promise<void> {
    const status = await monitor.status(signal);
    const halted = HALTED[status];
    if (halted !== undefined) {
      await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
      await pace.sleep(POLL_MS, signal);
      if ((await monitor.status(signal)) === status) {
        throw new RdError('ERR_DRIVER_FAILED', halted, {
          advice: `Make room on the disk that ${places.data} is on; the guest then goes on by itself.`,
        });
      }
    }
    if (await clock.isOff(signal)) await clock.set(signal);
    clock.forget();
  }

  async function movePorts(spec: MachineSpec): Promise<void> {
    const record = await readQemuRecord(places.record);
    if (record === undefined || record === 'damaged') return;
    if (record.spec.sshPortForwarder === spec.sshPortForwarder) return;
    // First the word: a service that is killed in between leaves the rest to the next look.
    await writeQemuRecord(places.record, { ...record, spec });
    await ports.use(wayOut(spec));
  }

  async function start(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const found = await observe(signal);
    if (found.state === 'on' && sameSpec({ ...found.spec, sshPortForwarder: spec.sshPortForwarder }, spec)) {
      await movePorts(spec);
      return found.repair === undefined ? undefined : repair(signal);
    }
    if (found.state !== 'absent' && found.state !== 'off') await stopMachine(parts, signal);
    unreachableSince = undefined;
    await startMachine(parts, spec, signal);
  }

  return {
    observe,
    answers: async (signal) => (await monitor.status(signal)) === 'running' && (await guest.isConnected(signal)),
    async isUp() {
      const record = await readQemuRecord(places.record);
      if (record === undefined || record === 'damaged') return false;
      return record.power === 'on' && record.booted && (await isAlive());
    },
    async perform(step, signal) {
      if (step.do === 'stop') await stopMachine(parts, signal);
      else await start(step.spec, signal);
    },
  };
}

function wayOut({ sshPortForwarder }: MachineSpec): WayOut {
  return sshPortForwarder ? 'ssh' : 'qemu';
}

function broken(reason: string, message: string): MachineStatus {
  return { state: 'broken', reason, message };
}

function sameSpec(one: MachineSpec, other: MachineSpec): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
