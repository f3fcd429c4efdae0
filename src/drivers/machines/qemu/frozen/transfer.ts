import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../../../../errors.ts';
import { systemCode } from '../../../../os/io-error.ts';
import type { FileDigest } from './state.ts';

/** Large, because a state has hundreds of megabytes. */
const CHUNK_BYTES = 1024 * 1024;

/** Returns a stream that passes data through and computes its digest. */
function digestTransform(): { stream: Transform; sum(): FileDigest } {
  const hash = createHash('sha256');
  let bytes = 0;
  const stream = new Transform({
    writableHighWaterMark: CHUNK_BYTES,
    readableHighWaterMark: CHUNK_BYTES,
    transform(piece: Buffer, _encoding, done) {
      hash.update(piece);
      bytes += piece.length;
      done(null, piece);
    },
  });
  return { stream, sum: () => ({ bytes, sha256: hash.digest('hex') }) };
}

/** A listener that receives one state. */
export interface Receiver {
  /** Resolves when the sender has closed its end. @throws the error of the file or of the connection. */
  received: Promise<FileDigest>;
  /** Stops receiving, at any point. */
  close(): Promise<void>;
}

/** Listens on the socket and writes the data of the first client to an owner-only file. */
export async function receiveState(socket: string, file: string): Promise<Receiver> {
  await rm(socket, { force: true });
  const server = createServer({ pauseOnConnect: true });
  server.listen(socket);
  await once(server, 'listening');
  let sender: Socket | undefined;
  const received = new Promise<FileDigest>((resolve, reject) => {
    server.once('error', reject);
    server.once('connection', (connection: Socket) => {
      sender = connection;
      // Accept one client only.
      server.close();
      connection.on('error', () => undefined);
      const { stream, sum } = digestTransform();
      connection.resume();
      pipeline(
        connection,
        stream,
        createWriteStream(file, { flags: 'wx', mode: 0o600, highWaterMark: CHUNK_BYTES }),
      ).then(() => resolve(sum()), reject);
    });
  });
  // Whoever closes the receiver reports the reason.
  received.catch(() => undefined);
  return {
    received,
    async close() {
      sender?.destroy();
      server.close();
      await rm(socket, { force: true });
    },
  };
}

/** Connects to the listener on the socket; undefined until it accepts, because the socket file appears before the listener is ready. */
export async function connectToReceiver(socket: string, signal: AbortSignal): Promise<Socket | undefined> {
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
 * Sends the file over the connection. The digest covers exactly the bytes sent.
 * @throws the error of the file or of the connection.
 */
export async function sendState(file: string, connection: Socket, signal: AbortSignal): Promise<FileDigest> {
  // The listener stays after everything was sent: the peer may be killed midway.
  connection.on('error', () => undefined);
  const { stream, sum } = digestTransform();
  await pipeline(createReadStream(file, { highWaterMark: CHUNK_BYTES }), stream, connection, { signal });
  return sum();
}

/** Returns the digest of a file. */
export async function digestFile(file: string, signal?: AbortSignal): Promise<FileDigest> {
  const { stream, sum } = digestTransform();
  const nowhere = new Writable({ write: (_piece, _encoding, done) => done() });
  await pipeline(createReadStream(file, { highWaterMark: CHUNK_BYTES }), stream, nowhere, signal ? { signal } : {});
  return sum();
}

/**
 * Compares digests.
 * @throws RdError `ERR_DRIVER_FAILED` when the file differs from the one that was written.
 */
export function verifyDigest(name: string, found: FileDigest, written: FileDigest): void {
  if (found.sha256 === written.sha256 && found.bytes === written.bytes) return;
  throw new RdError('ERR_DRIVER_FAILED', `${name} of the frozen state is damaged: its checksum does not match`);
}
