import { connect, type NetConnectOpts } from 'node:net';

/** How long it may take to be accepted, in milliseconds; on this machine that takes none. */
const PROBE_MS = 1000;

/** True when something on this machine accepts connections there. */
export function accepts(where: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...where, timeout: PROBE_MS });
    const finish = (found: boolean) => {
      socket.destroy();
      resolve(found);
    };
    socket.once('connect', () => finish(true));
    socket.once('timeout', () => finish(false));
    socket.once('error', () => finish(false));
  });
}
