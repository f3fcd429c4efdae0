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

/** Ports of the guest that nothing chooses by itself. */
const FIRST_PORT = 20_000;
const LAST_PORT = 30_000;
const TRIES = 8;

/** See `Shell.offer`. What is offered is offered again after the connection to the guest broke and was made anew. */
export function guestOffers(
  places: Pick<QemuPlaces, 'run'>,
  guest: Connection,
  claim: ClaimPort,
): (server: Server, at: ServerPlace) => Promise<Offer> {
  const open = new Map<string, () => Promise<void>>();
  guest.onReconnect(async () => {
    for (const again of open.values()) await again();
  });

  /** A forward of an earlier service leads to the same place; it is taken away, because its socket in the guest may be gone. */
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
    // A port that ssh chose could not be taken away again: its name there stays 0.
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
  /** Ends it and every connection; harmless when repeated. */
  close(): Promise<void>;
}

/** Listens at the path, in a directory that is private. What a killed process left there is taken away. */
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
      // From here on an error concerns one connection, never the service.
      server.on('error', () => undefined);
      resolve();
    });
  });
  await chmod(path, 0o600);
  return {
    path,
    close: () =>
      new Promise((resolve) => {
        // An error here says that it is closed already.
        server.close(() => resolve());
        for (const socket of connections) socket.destroy();
      }),
  };
}
