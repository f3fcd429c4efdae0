import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../../../../errors.ts';
import { systemCode } from '../../../../storage/io-error.ts';
import type { Summed } from './manifest.ts';

/** Large pieces: a state has hundreds of megabytes. */
const PIECE = 1024 * 1024;

/** Passes everything on, and knows its sum at the end. */
function meter(): { through: Transform; sum(): Summed } {
  const hash = createHash('sha256');
  let bytes = 0;
  const through = new Transform({
    writableHighWaterMark: PIECE,
    readableHighWaterMark: PIECE,
    transform(piece: Buffer, _encoding, done) {
      hash.update(piece);
      bytes += piece.length;
      done(null, piece);
    },
  });
  return { through, sum: () => ({ bytes, sha256: hash.digest('hex') }) };
}

/** Something that listens for one state. */
export interface Receiver {
  /** Resolves when the sender has closed its end. @throws the error of the file or of the connection. */
  received: Promise<Summed>;
  /** Ends it, at whatever point. */
  close(): Promise<void>;
}

/** Listens on the socket and writes what the first one to connect says into the file, which only its owner may read. */
export async function receiveState(socket: string, file: string): Promise<Receiver> {
  await rm(socket, { force: true });
  const server = createServer({ pauseOnConnect: true });
  server.listen(socket);
  await once(server, 'listening');
  let taken: Socket | undefined;
  const received = new Promise<Summed>((resolve, reject) => {
    server.once('error', reject);
    server.once('connection', (connection: Socket) => {
      taken = connection;
      // Nobody else is let in.
      server.close();
      connection.on('error', () => undefined);
      const { through, sum } = meter();
      connection.resume();
      pipeline(connection, through, createWriteStream(file, { flags: 'wx', mode: 0o600, highWaterMark: PIECE })).then(
        () => resolve(sum()),
        reject,
      );
    });
  });
  // Whoever closes it has another reason to tell.
  received.catch(() => undefined);
  return {
    received,
    async close() {
      taken?.destroy();
      server.close();
      await rm(socket, { force: true });
    },
  };
}

/** A connection to whoever listens on the socket; undefined while nobody does: there is a socket a moment before somebody listens on it. */
export async function reachState(socket: string, signal: AbortSignal): Promise<Socket | undefined> {
  const connection = connect({ path: socket });
  try {
    await once(connection, 'connect', { signal });
    return connection;
  } catch (error) {
    connection.destroy();
    if (['ENOENT', 'ECONNREFUSED'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  }
}

/**
 * Says the file on the connection. The sum is that of exactly these bytes.
 * @throws the error of the file or of the connection.
 */
export async function sendState(file: string, connection: Socket, signal: AbortSignal): Promise<Summed> {
  // Also when all has been said: the other one may be ended in the middle of it.
  connection.on('error', () => undefined);
  const { through, sum } = meter();
  await pipeline(createReadStream(file, { highWaterMark: PIECE }), through, connection, { signal });
  return sum();
}

/** The sum of a file. */
export async function sumOf(file: string, signal?: AbortSignal): Promise<Summed> {
  const { through, sum } = meter();
  const nowhere = new Writable({ write: (_piece, _encoding, done) => done() });
  await pipeline(createReadStream(file, { highWaterMark: PIECE }), through, nowhere, signal ? { signal } : {});
  return sum();
}

/** Whether it is the file that was written. */
export function refuseOther(name: string, found: Summed, written: Summed): void {
  if (found.sha256 === written.sha256 && found.bytes === written.bytes) return;
  throw new RdError(
    'ERR_DRIVER_FAILED',
    `${name} of the frozen state is damaged: its sum is not the one that it was written with`,
  );
}
