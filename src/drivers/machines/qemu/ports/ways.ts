import { createServer } from 'node:net';
import { RdError } from '../../../../errors.ts';
import type { Connection } from '../guest.ts';
import type { Monitor } from '../monitor.ts';
import type { Qmp } from '../qmp.ts';
import type { GuestAddress } from './listening.ts';

/** One way to forward a port of 127.0.0.1 of the host to the same port of the guest. */
export interface Way {
  /** Idempotent. @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. */
  open(port: number, address: GuestAddress, signal: AbortSignal): Promise<void>;
  /** @throws RdError as above, also when there is no such forward. */
  close(port: number, address: GuestAddress, signal: AbortSignal): Promise<void>;
}

/** Over the ssh connection: also reaches the guest's own loopback. */
export function sshWay(guest: Pick<Connection, 'forward'>): Way {
  const words = (port: number, address: GuestAddress) => {
    const there = address === '::' || address === '::1' ? '[::1]' : '127.0.0.1';
    return ['-L', `127.0.0.1:${port}:${there}:${port}`];
  };
  return {
    open: async (port, address) => void (await guest.forward('forward', ...words(port, address))),
    close: async (port, address) => void (await guest.forward('cancel', ...words(port, address))),
  };
}

/**
 * By QEMU's user-mode network: the guest sees connections from outside.
 * @param network QEMU's name for it.
 */
export function qemuWay(monitor: Pick<Monitor, 'use'>, network: string): Way {
  const remove = (qmp: Qmp, port: number, signal: AbortSignal) =>
    human(qmp, `hostfwd_remove ${network} tcp:127.0.0.1:${port}`, signal);
  return {
    open: (port, address, signal) => {
      if (address === '127.0.0.1' || address === '::1') {
        const message = `it listens on ${address} of the guest alone, which only the forwarder over SSH reaches`;
        return Promise.reject(new RdError('ERR_DRIVER_FAILED', message));
      }
      return monitor.use(async (qmp) => {
        // QEMU refuses a duplicate.
        await remove(qmp, port, signal);
        const said = await human(qmp, `hostfwd_add ${network} tcp:127.0.0.1:${port}-:${port}`, signal);
        if (said !== '') throw new RdError('ERR_DRIVER_FAILED', `QEMU says: ${said}`);
      }, signal);
    },
    close: async (port, _address, signal) => void (await monitor.use((qmp) => remove(qmp, port, signal), signal)),
  };
}

/** QMP has no command for this; the monitor command prints nothing on success. */
async function human(qmp: Qmp, line: string, signal: AbortSignal): Promise<string> {
  const said = await qmp.execute('human-monitor-command', { 'command-line': line }, { signal });
  return typeof said === 'string' ? said.trim() : '';
}

/** Why a port of 127.0.0.1 is unavailable, as a clause; undefined when it is free. */
export function portConflict(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(refusal(port, error)));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function refusal(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return `another program of this computer listens on 127.0.0.1:${port}`;
  if (code === 'EACCES') return 'this computer gives ports below 1024 to its administrator alone';
  return message;
}
