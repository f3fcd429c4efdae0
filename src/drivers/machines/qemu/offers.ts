import { createHash, randomInt } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { RdError } from '../../../errors.ts';
import type { Offer, ServerPlace } from '../../shell.ts';
import type { Connection } from './guest.ts';
import type { QemuPlaces } from './places.ts';
import type { ClaimPort } from './ports/forwarder.ts';
import { WAY_SCRIPT } from './scripts.ts';

/** Guest ports outside the ephemeral range. */
const FIRST_PORT = 20_000;
const LAST_PORT = 30_000;
const TRIES = 8;

/** See `Shell.offer`. Offers are restored after the guest connection is re-established. */
export function guestOffers(
  places: Pick<QemuPlaces, 'run'>,
  guest: Connection,
  claim: ClaimPort,
): (server: Server, at: ServerPlace) => Promise<Offer> {
  const open = new Map<string, () => Promise<void>>();
  guest.onReconnect(async () => {
    for (const again of open.values()) await again();
  });

  /** A forward of an earlier service may point to a stale guest socket; replace it. */
  async function forward(at: ServerPlace, here: string): Promise<string> {
    const words = 'socket' in at ? `${at.socket}:${here}` : `127.0.0.1:${at.port}:${here}`;
    await guest.forward('cancel', '-R', words).catch(() => undefined);
    if ('socket' in at) {
      await guest.run(['sh', '-s', '--', at.socket], { input: WAY_SCRIPT });
      await guest.run(['rm', '-f', '--', at.socket]);
    }
    await guest.forward('forward', '-R', words);
    return words;
  }

  async function offerAt(server: Server, at: ServerPlace): Promise<Offer> {
    const name = createHash('sha256').update(JSON.stringify(at)).digest('hex').slice(0, 8);
    const here = await listenHere(server, join(places.run, `offer-${name}`));
    const giveBack = 'socket' in at ? () => undefined : await claim(at.port);
    try {
      const words = await forward(at, here.path);
      open.set(words, async () => void (await forward(at, here.path)));
      return {
        port: 'socket' in at ? 0 : at.port,
        async close() {
          open.delete(words);
          // The connection may be gone, and the forward with it.
          await guest.forward('cancel', '-R', words).catch(() => undefined);
          giveBack();
          await here.close();
        },
      };
    } catch (error) {
      giveBack();
      await here.close();
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
        throw new RdError('ERR_PORT_IN_USE', 'the guest gave no port of its loopback for a server of this host', {
          cause,
        });
      }
    }
  };
}

/** A server of this process at a socket of this host. */
interface LocalServer {
  path: string;
  /** Closes the server and every connection. Idempotent. */
  close(): Promise<void>;
}

/** Listens at the path, in a private directory. Removes a stale socket first. */
async function listenHere(server: Server, path: string): Promise<LocalServer> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new RdError('ERR_DRIVER_FAILED', `no server could be opened at ${path}: ${cause.message}`, { cause }));
    server.once('error', fail);
    server.listen({ path }, () => {
      server.off('error', fail);
      // From here on an error concerns one connection, not the service.
      server.on('error', () => undefined);
      resolve();
    });
  });
  await chmod(path, 0o600);
  return {
    path,
    close: () =>
      new Promise((resolve) => {
        // An error here means that it is already closed.
        server.close(() => resolve());
        for (const socket of connections) socket.destroy();
      }),
  };
}
