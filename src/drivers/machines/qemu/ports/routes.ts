import { RdError } from '../../../../errors.ts';
import type { Connection } from '../guest.ts';
import type { Monitor, Qmp } from '../monitor.ts';
import type { Loopback, Port } from './forwards.ts';
import type { Listening } from './watch.ts';

/** A method of forwarding a port of this host to the same port of the guest. */
export interface Route {
  /** Idempotent. @returns where it listens, 127.0.0.1 first. @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. */
  open(at: Listening, signal: AbortSignal): Promise<readonly Loopback[]>;
  /** @throws RdError as above, also when there is no such forward. */
  close(at: Listening, signal: AbortSignal): Promise<void>;
}

/** Over the ssh connection, which supports only TCP but also reaches the guest's loopback. */
export function sshRoute(guest: Pick<Connection, 'forward'>): Route {
  const options = (hostAddress: Loopback, { port, address }: Listening) => {
    const guestAddress = address === '::' || address === '::1' ? '[::1]' : '127.0.0.1';
    return ['-L', `${hostAddress === '::1' ? '[::1]' : hostAddress}:${port}:${guestAddress}:${port}`];
  };
  return {
    async open(at) {
      await guest.forward('forward', ...options('127.0.0.1', at));
      // The host may have no IPv6, or another program may use the port; IPv4 clients work anyway.
      const both = await guest.forward('forward', ...options('::1', at)).then(
        () => true,
        () => false,
      );
      return both ? ['127.0.0.1', '::1'] : ['127.0.0.1'];
    },
    async close(at) {
      await guest.forward('cancel', ...options('::1', at)).catch(() => undefined);
      await guest.forward('cancel', ...options('127.0.0.1', at));
    },
  };
}

/**
 * Over QEMU's user-mode network, which forwards from IPv4 only; the guest sees connections from outside.
 * @param network QEMU's name for the network.
 */
export function qemuRoute(monitor: Pick<Monitor, 'use'>, network: string): Route {
  const remove = (qmp: Qmp, { protocol, port }: Port, signal: AbortSignal) =>
    human(qmp, `hostfwd_remove ${network} ${protocol}:127.0.0.1:${port}`, signal);
  return {
    async open(at, signal) {
      const { protocol, port, address } = at;
      if (address === '127.0.0.1' || address === '::1') {
        const how = protocol === 'tcp' ? 'only SSH port forwarding can reach' : 'no UDP forward can reach';
        throw new RdError('ERR_DRIVER_FAILED', `it listens only on ${address} in the guest, which ${how}`);
      }
      await monitor.use(async (qmp) => {
        // QEMU refuses a duplicate.
        await remove(qmp, at, signal);
        const answer = await human(qmp, `hostfwd_add ${network} ${protocol}:127.0.0.1:${port}-:${port}`, signal);
        if (answer !== '') throw new RdError('ERR_DRIVER_FAILED', `QEMU refused: ${answer}`);
      }, signal);
      return ['127.0.0.1'];
    },
    close: async (at, signal) => void (await monitor.use((qmp) => remove(qmp, at, signal), signal)),
  };
}

/** QMP has no command for this; the monitor command prints nothing on success. */
async function human(qmp: Qmp, line: string, signal: AbortSignal): Promise<string> {
  const answer = await qmp.execute('human-monitor-command', { 'command-line': line }, { signal });
  return typeof answer === 'string' ? answer.trim() : '';
}
