import { createHash, randomInt } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type { Offer, ServerPlace, Shell } from '../../shell.ts';
import { connectTo, listenOnHost } from '../shared/sockets.ts';
import type { Connection } from './guest.ts';
import type { QemuPlaces } from './places.ts';
import type { PortConflict } from './ports/conflict.ts';
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

/** `$1`: a socket path. Prepares the path for a new socket. */
const SOCKET_SCRIPT = `set -eu
umask 077
mkdir -p -- "$(dirname -- "$1")"
rm -f -- "$1"
`;

/** File copies, port forwards and connections to the guest, all over ssh. */
export function guestReach(
  guest: Pick<Connection, 'run' | 'forward' | 'onReconnect'>,
  places: Pick<QemuPlaces, 'run'>,
  claim: ClaimPort,
  portConflict: PortConflict,
): Pick<Shell, 'copyIn' | 'localPort' | 'closePort' | 'dial'> {
  const ports = new Set<number>();
  const claims = new Map<number, () => void>();
  const forwardSpec = (port: number) => `127.0.0.1:${port}:127.0.0.1:${port}`;
  guest.onReconnect(async () => ports.clear());

  return {
    async copyIn(from, to, mode, signal) {
      const { size } = await stat(from);
      const words = ['sh', '-c', COPY_SCRIPT, 'copy', to, mode.toString(8), String(size)];
      await guest.run(words, { inputFile: from, signal, timeoutMs: COPY_LIMIT_MS });
    },
    async localPort(port) {
      if (ports.has(port)) return;
      const releasePort = await claim(port);
      const words = forwardSpec(port);
      // An earlier service may have made the forward over the same connection.
      await guest.forward('cancel', '-L', words).catch(() => undefined);
      const conflict = await portConflict({ protocol: 'tcp', port });
      if (conflict !== undefined) {
        releasePort();
        throw new RdError('ERR_PORT_IN_USE', `127.0.0.1:${port} cannot be opened: ${conflict}`, {
          advice: 'Stop that program, or choose another port.',
        });
      }
      await guest.forward('forward', '-L', words).catch((error: unknown) => {
        releasePort();
        throw error;
      });
      ports.add(port);
      claims.set(port, releasePort);
    },
    async closePort(port) {
      ports.delete(port);
      // The forward may also belong to a port that a container publishes, which is then restored.
      const releasePort = claims.get(port) ?? (await claim(port));
      // Cancel the forward even without a record: an earlier service may have made it. The connection may be gone, and the forward with it.
      await guest.forward('cancel', '-L', forwardSpec(port)).catch(() => undefined);
      releasePort();
      claims.delete(port);
    },
    async dial(host, port, signal) {
      // A short name keeps the path within the socket path limit.
      const name = createHash('sha256').update(`${host} ${port}`).digest('hex').slice(0, 8);
      const path = join(places.run, `d${name}`);
      const existing = await tryConnect(path, signal);
      if (existing) return existing;
      await rm(path, { force: true });
      await guest.forward('forward', '-L', `${path}:${host.includes(':') ? `[${host}]` : host}:${port}`);
      const opened = await tryConnect(path, signal);
      if (opened) return opened;
      throw new RdError('ERR_NOT_READY', `${host}:${port} in the guest cannot be reached`);
    },
  };
}

/** Connects to a socket; undefined when nothing listens there. */
function tryConnect(path: string, signal: AbortSignal): Promise<Duplex | undefined> {
  return connectTo({ path }, signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return undefined;
  });
}

/** First guest port to offer, outside the ephemeral range. */
const FIRST_PORT = 20_000;
const LAST_PORT = 30_000;
const TRIES = 8;

/**
 * Makes servers of this process reachable in the guest, as specified by `Shell.offer`. Offers are restored after the guest connection is
 * re-established.
 */
export function guestOffers(
  places: Pick<QemuPlaces, 'run'>,
  guest: Connection,
  claim: ClaimPort,
): (server: Server, at: ServerPlace) => Promise<Offer> {
  const open = new Map<string, () => Promise<void>>();
  guest.onReconnect(async () => {
    for (const restore of open.values()) await restore();
  });

  /** A forward of an earlier service may point to a stale guest socket; replace it. */
  async function forward(at: ServerPlace, hostSocket: string): Promise<string> {
    const words = 'socket' in at ? `${at.socket}:${hostSocket}` : `127.0.0.1:${at.port}:${hostSocket}`;
    await guest.forward('cancel', '-R', words).catch(() => undefined);
    if ('socket' in at) {
      await guest.run(['sh', '-s', '--', at.socket], { input: SOCKET_SCRIPT });
    }
    await guest.forward('forward', '-R', words);
    return words;
  }

  async function offerAt(server: Server, at: ServerPlace): Promise<Offer> {
    const name = createHash('sha256').update(JSON.stringify(at)).digest('hex').slice(0, 8);
    const path = join(places.run, `offer-${name}`);
    // An earlier service may have left the socket.
    await rm(path, { force: true });
    const listener = await listenOnHost(server, { socket: path });
    const releasePort = 'socket' in at ? () => undefined : await claim(at.port);
    try {
      const words = await forward(at, path);
      open.set(words, async () => void (await forward(at, path)));
      return {
        port: 'socket' in at ? 0 : at.port,
        async close() {
          open.delete(words);
          // The connection may be gone, and the forward with it.
          await guest.forward('cancel', '-R', words).catch(() => undefined);
          releasePort();
          await listener.close();
        },
      };
    } catch (error) {
      releasePort();
      await listener.close();
      throw error;
    }
  }

  return async (server, at) => {
    if ('socket' in at || at.port !== 0) return offerAt(server, at);
    // ssh cannot cancel a port that it allocated: the name stays 0.
    for (let tries = 1; ; tries += 1) {
      try {
        return await offerAt(server, { port: randomInt(FIRST_PORT, LAST_PORT) });
      } catch (cause) {
        if (tries < TRIES) continue;
        throw new RdError('ERR_PORT_IN_USE', 'no loopback port of the guest is free for a server of this host', {
          cause,
        });
      }
    }
  };
}
