import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import type { Connection } from './connection.ts';
import { listenerMismatch } from './listener-owner.ts';
import { addressOf } from './request-text.ts';
import { isProof, newNonce } from './service-proof.ts';
import { staleAdvice } from './stale-file.ts';

/** A proof takes less than a hundred bytes. */
const ANSWER_LIMIT = 4096;

export interface AssuranceLimits {
  /** Aborts with the error to throw. */
  signal: AbortSignal;
}

/**
 * Connects, and returns the connection once the listener is verified. Until then nothing revealing is sent: at most a
 * random number.
 * @throws RdError `ERR_NOT_RUNNING` for another program; system errors of a failed connection pass through.
 */
export async function assuredSocket(connection: Connection, { signal }: AssuranceLimits): Promise<Socket> {
  const { reached } = connection;
  if (reached.by === 'proof') {
    const socket = await opened(connection, signal);
    if (await proves(socket, connection, reached.password, signal)) return socket;
    socket.destroy();
    if (!reached.orUser) throw unproven(connection, 'it does not prove that it is the service that wrote the file');
  }
  const socket = await opened(connection, signal);
  // Check after connecting: the previous listener may have been another program.
  const why = listenerMismatch(connection, { address: socket.remoteAddress, port: connection.port });
  if (why === undefined) return socket;
  socket.destroy();
  throw unproven(connection, why);
}

function opened({ host, port }: Connection, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const end = () => socket.destroy(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    socket.once('connect', () => {
      signal.removeEventListener('abort', end);
      resolve(socket);
    });
    // Keep the handler: a connection that breaks between requests is detected by the next one.
    socket.on('error', reject);
  });
}

/** Requests the proof on this very connection, which stays open. False for any other answer, or none. */
function proves(socket: Socket, { host, port }: Connection, password: string, signal: AbortSignal): Promise<boolean> {
  const nonce = newNonce();
  return new Promise((resolve, reject) => {
    const asked = request({
      host,
      port,
      path: `/v2/proof?nonce=${nonce}`,
      headers: { Connection: 'keep-alive' },
      createConnection: () => socket,
      signal,
    });
    const failed = (cause: unknown) => {
      if (signal.aborted) reject(signal.reason);
      else resolve(cause === undefined);
    };
    asked.on('error', failed);
    asked.on('response', (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on('data', (part: Buffer) => {
        size += part.length;
        if (size > ANSWER_LIMIT) asked.destroy(new Error('too long for a proof'));
        else parts.push(part);
      });
      response.on('error', failed);
      response.on('end', () => {
        const proof = proofIn(Buffer.concat(parts).toString());
        // A connection that closes now cannot be used again.
        const stays = asked.shouldKeepAlive && !socket.destroyed;
        resolve(stays && isProof({ password, port }, nonce, proof));
      });
    });
    asked.end();
  });
}

function proofIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value.proof : undefined;
  } catch {
    return undefined;
  }
}

function unproven(connection: Connection, why: string): RdError {
  const message = `another program listens on ${addressOf(connection)}, and nothing was sent to it: ${why}`;
  return new RdError('ERR_NOT_RUNNING', message, { advice: staleAdvice(connection) });
}
