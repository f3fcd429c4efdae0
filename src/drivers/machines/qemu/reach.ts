import { createHash } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { connect, createServer, type NetConnectOpts } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type { Shell } from '../../shell.ts';
import type { Connection } from './guest.ts';
import type { QemuPlaces } from './places.ts';
import type { ClaimPort } from './ports/forwarder.ts';

/** `$1`: the file, `$2`: its mode, `$3`: its size. Renames only a complete upload into place. */
const COPY_SCRIPT = `set -eu
umask 077
mkdir -p -- "$(dirname -- "$1")"
cat > "$1.new"
[ "$(wc -c < "$1.new")" -eq "$3" ] || { rm -f -- "$1.new"; echo 'the copy broke off' >&2; exit 1; }
chmod "$2" "$1.new"
sync "$1.new"
mv -f -- "$1.new" "$1"
`;
const COPY_LIMIT_MS = 15 * 60_000;

/** Access to the guest beside programs and sockets, all of it over ssh. */
export function guestReach(
  guest: Pick<Connection, 'run' | 'forward' | 'onReconnect'>,
  places: Pick<QemuPlaces, 'run'>,
  claim: ClaimPort,
): Pick<Shell, 'copyIn' | 'localPort' | 'closePort' | 'dial'> {
  const ports = new Set<number>();
  const claims = new Map<number, () => void>();
  const wordsOf = (port: number) => `127.0.0.1:${port}:127.0.0.1:${port}`;
  guest.onReconnect(async () => ports.clear());

  return {
    async copyIn(from, to, mode, signal) {
      const { size } = await stat(from);
      const words = ['sh', '-c', COPY_SCRIPT, 'copy', to, mode.toString(8), String(size)];
      await guest.run(words, { inputFile: from, signal, timeoutMs: COPY_LIMIT_MS });
    },
    async localPort(port) {
      if (ports.has(port)) return;
      const giveBack = await claim(port);
      const words = wordsOf(port);
      // A forward that an earlier service made over the same connection.
      await guest.forward('cancel', '-L', words).catch(() => undefined);
      if (!(await isFree(port))) {
        giveBack();
        throw new RdError('ERR_PORT_IN_USE', `127.0.0.1:${port} of this computer is in use by another program`, {
          advice: 'End that program, or choose another port.',
        });
      }
      await guest.forward('forward', '-L', words).catch((error: unknown) => {
        giveBack();
        throw error;
      });
      ports.add(port);
      claims.set(port, giveBack);
    },
    async closePort(port) {
      ports.delete(port);
      // The same forward may belong to a port that a container publishes, which is restored.
      const giveBack = claims.get(port) ?? (await claim(port));
      // Also without a record: an earlier service may have made it. The connection may be gone, and the forward with it.
      await guest.forward('cancel', '-L', wordsOf(port)).catch(() => undefined);
      giveBack();
      claims.delete(port);
    },
    async dial(host, port, signal) {
      // A short name keeps the path within the socket path limit.
      const name = createHash('sha256').update(`${host} ${port}`).digest('hex').slice(0, 8);
      const path = join(places.run, `d${name}`);
      const there = await connected({ path }, signal);
      if (there) return there;
      await rm(path, { force: true });
      await guest.forward('forward', '-L', `${path}:${host.includes(':') ? `[${host}]` : host}:${port}`);
      const made = await connected({ path }, signal);
      if (made) return made;
      throw new RdError('ERR_NOT_READY', `${host}:${port} in the guest cannot be reached`);
    },
  };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Undefined when the file is missing. Throws `ERR_CANCELLED`. */
function connected(to: NetConnectOpts, signal: AbortSignal): Promise<Duplex | undefined> {
  return new Promise((resolve, reject) => {
    const cancelled = () => new RdError('ERR_CANCELLED', 'connecting into the guest was cancelled');
    if (signal.aborted) return reject(cancelled());
    const socket = connect({ ...to, allowHalfOpen: true });
    const giveUp = () => {
      socket.destroy();
      reject(cancelled());
    };
    signal.addEventListener('abort', giveUp, { once: true });
    const settled = (result: Duplex | undefined) => {
      signal.removeEventListener('abort', giveUp);
      socket.removeAllListeners('error');
      resolve(result);
    };
    socket.once('connect', () => settled(socket));
    socket.once('error', () => settled(undefined));
  });
}
