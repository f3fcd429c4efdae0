import { connect, type NetConnectOpts } from 'node:net';

/** Connect timeout in milliseconds; local connections are immediate. */
const PROBE_MS = 1000;

/** True when a local program accepts connections there. */
export function acceptsConnections(where: NetConnectOpts, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...where, timeout: PROBE_MS, ...(signal ? { signal } : {}) });
    const finish = (isListening: boolean) => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once('connect', () => finish(true));
    socket.once('timeout', () => finish(false));
    socket.on('error', () => finish(false));
  });
}
