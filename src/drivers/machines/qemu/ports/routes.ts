import { RdError } from '../../../../errors.ts';
import type { Connection } from '../guest.ts';
import type { Monitor, Qmp } from '../monitor.ts';
import { type Binding, type HostAddress, isLoopback, type Target } from './forwards.ts';

/** A route from a port of this host to the same port of the guest. */
export interface Route {
  /**
   * Opens a forward. Idempotent.
   * @returns the addresses that it listens on, IPv4 first.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`.
   */
  open(at: Target, signal: AbortSignal): Promise<readonly HostAddress[]>;
  /**
   * Closes a forward.
   * @throws RdError `ERR_DRIVER_FAILED`, also when there is no such forward, `ERR_CANCELLED`.
   */
  close(at: Target, signal: AbortSignal): Promise<void>;
}

/** Host addresses of a forward, by IP version. */
export const HOST_ADDRESSES = {
  loopback: { ipv4: '127.0.0.1', ipv6: '::1' },
  all: { ipv4: '0.0.0.0', ipv6: '::' },
} as const satisfies Record<Binding, Record<'ipv4' | 'ipv6', HostAddress>>;

/** Returns the route over the ssh connection, which supports only TCP but also reaches the guest's loopback. */
export function sshRoute(guest: Pick<Connection, 'forward'>): Route {
  const options = (version: 'ipv4' | 'ipv6', { port, address, binding }: Target) => {
    const from = bracketAddress(HOST_ADDRESSES[binding][version]);
    return ['-L', `${from}:${port}:${bracketAddress(connectableAddress(address))}:${port}`];
  };
  return {
    async open(at) {
      const { ipv4, ipv6 } = HOST_ADDRESSES[at.binding];
      await guest.forward('forward', ...options('ipv4', at));
      // The host may have no IPv6, or another program may use the port; IPv4 clients work anyway.
      const both = await guest.forward('forward', ...options('ipv6', at)).then(
        () => true,
        () => false,
      );
      return both ? [ipv4, ipv6] : [ipv4];
    },
    async close(at) {
      await guest.forward('cancel', ...options('ipv6', at)).catch(() => undefined);
      await guest.forward('cancel', ...options('ipv4', at));
    },
  };
}

function connectableAddress(address: Target['address']): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return address === '::' ? '::1' : address;
}

function bracketAddress(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/**
 * Returns the route over QEMU's user-mode network, which forwards from IPv4 only; the guest sees connections from
 * outside.
 * @param network QEMU's name for the network.
 */
export function qemuRoute(monitor: Pick<Monitor, 'use'>, network: string): Route {
  const from = ({ protocol, port, binding }: Target) => `${protocol}:${HOST_ADDRESSES[binding].ipv4}:${port}`;
  const remove = (qmp: Qmp, at: Target, signal: AbortSignal) =>
    human(qmp, `hostfwd_remove ${network} ${from(at)}`, signal);
  return {
    async open(at, signal) {
      const { protocol, port, address, binding } = at;
      if (isLoopback(address)) {
        const how = protocol === 'tcp' ? 'only SSH port forwarding can reach' : 'no UDP forward can reach';
        throw new RdError('ERR_DRIVER_FAILED', `it listens only on ${address} in the guest, which ${how}`);
      }
      await monitor.use(async (qmp) => {
        // QEMU refuses a duplicate.
        await remove(qmp, at, signal);
        const answer = await human(qmp, `hostfwd_add ${network} ${from(at)}-:${port}`, signal);
        if (answer !== '') throw new RdError('ERR_DRIVER_FAILED', `QEMU refused: ${answer}`);
      }, signal);
      return [HOST_ADDRESSES[binding].ipv4];
    },
    close: async (at, signal) => void (await monitor.use((qmp) => remove(qmp, at, signal), signal)),
  };
}

/** Runs a monitor command, because QMP has no command for this; it prints nothing on success. */
async function human(qmp: Qmp, line: string, signal: AbortSignal): Promise<string> {
  const answer = await qmp.execute('human-monitor-command', { 'command-line': line }, { signal });
  return typeof answer === 'string' ? answer.trim() : '';
}
