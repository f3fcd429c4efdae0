import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RdError } from '../../../../errors.ts';
import type { Clock } from '../../../../os/clock.ts';
import { findDaemon, signalDaemon } from '../../../../os/daemon.ts';
import { processorTime } from '../../../../os/process-table.ts';
import type { DriverContext } from '../../../driver.ts';
import type { Lifelines } from '../../shared/lifelines.ts';
import { type Connection, createGuestClock } from '../guest.ts';
import { requestStatistics } from '../live/adjust.ts';
import { type Monitor, PAUSED } from '../monitor.ts';
import type { GuestMounts } from '../mounts/mounts.ts';
import type { QemuPlaces } from '../places.ts';
import type { PortForwarder } from '../ports/forwarder.ts';
import { connectionsAt, type Door, type Doors, readSocketCounts, readSocketTables } from './connections.ts';
import type { PausedParts } from './pauses.ts';

export interface GuestPauseParts {
  places: QemuPlaces;
  guest: Pick<Connection, 'isConnected' | 'run' | 'sessions'>;
  monitor: Monitor;
  mounts: Pick<GuestMounts, 'connections'>;
  ports: Pick<PortForwarder, 'published'>;
  lines: Pick<Lifelines, 'held'>;
  /** Returns the port of 127.0.0.1 that leads to the guest's ssh. */
  port(): Promise<number>;
  /** True if the machine is on and has booted. */
  isUp(): Promise<boolean>;
  /** Returns the last start of an emulated machine; undefined for others. */
  emulatedStart: PausedParts['emulatedStart'];
  clock: Clock;
  log: DriverContext['log'];
}

/**
 * Returns the operations that pause one machine. QEMU halts the guest. The ssh connections to it are halted too: they would end after forty seconds
 * without a response, and the mounted home directory with them. A halted ssh still listens: the kernel queues connections to it, and clients need not
 * know that it is paused.
 */
export function guestPause(parts: GuestPauseParts): PausedParts {
  const { places, guest, monitor, mounts, ports, lines, port, isUp, emulatedStart, clock, log } = parts;
  const guestClock = createGuestClock(guest, clock);

  async function signalConnections(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    for (const record of await connectionRecords()) await signalDaemon(record, signal);
  }

  /** Returns the records of the programs of this host that hold a connection to the guest's ssh. */
  async function connectionRecords(): Promise<string[]> {
    return [places.sshRecord, ...(await mounts.connections())];
  }

  async function openConnections(): Promise<number> {
    const found = await Promise.all((await connectionRecords()).map(findDaemon));
    return found.filter(({ state }) => state === 'running').length;
  }

  async function wake(signal: AbortSignal): Promise<void> {
    try {
      await monitor.use(async (qmp) => {
        await qmp.execute('cont', undefined, { signal });
        // The last report stays as old as the pause, and the live limits of the machine depend on it.
        await requestStatistics(qmp, signal);
      }, signal);
    } finally {
      await signalConnections('SIGCONT');
    }
    if (!(await guest.isConnected(signal))) throw new RdError('ERR_DRIVER_FAILED', 'the guest does not respond');
    await guestClock.set(signal);
  }

  async function engineSockets(): Promise<string[]> {
    const names = await readdir(places.run);
    return names.filter((name) => name.endsWith('.sock')).map((name) => join(places.run, name));
  }

  async function doors(): Promise<Doors> {
    const open = new Map<number, 'loopback' | 'all'>([[await port(), 'loopback']]);
    for (const { protocol, state, port: number, addresses = [] } of ports.published()) {
      if (protocol === 'udp' || state !== 'forwarded') continue;
      open.set(number, addresses.includes('0.0.0.0') ? 'all' : 'loopback');
    }
    return { sockets: new Set([places.control, ...(await engineSockets())]), ports: open };
  }

  return {
    async pause(signal) {
      const status = await monitor.status(signal);
      if (status !== 'running') throw new RdError('ERR_DRIVER_FAILED', `QEMU reports that the guest is ${status}`);
      try {
        await monitor.use((qmp) => qmp.execute('stop', undefined, { signal }), signal);
        await signalConnections('SIGSTOP');
      } catch (error) {
        await wake(signal).catch((cause: unknown) =>
          log('warn', 'the guest could not be woken', { why: messageOf(cause) }),
        );
        throw error;
      }
    },
    wake,
    async wakeAbandoned(signal) {
      if (!(await isUp())) return;
      await signalConnections('SIGCONT');
      if ((await monitor.status(signal)) !== PAUSED) return;
      log('info', 'an earlier service left the machine paused; waking it', {});
      await wake(signal);
    },
    connections: async () => connectionsAt(await doors(), await readSocketTables()),
    async own() {
      const own = new Map<Door, number>([
        [places.control, guest.sessions() + lines.held(places.control)],
        [await port(), await openConnections()],
      ]);
      for (const path of await engineSockets()) own.set(path, lines.held(path));
      return own;
    },
    connectionCounts: readSocketCounts,
    emulatedStart,
    async cpuMs() {
      const qemu = await findDaemon(places.qemuRecord);
      return qemu.state === 'running' ? processorTime(qemu.pid) : undefined;
    },
    clock,
    now: () => new Date().toISOString(),
    log,
  };
}
