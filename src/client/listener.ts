import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { uptime } from 'node:os';
import { RdError } from '../errors.ts';
import { parseObject } from '../json.ts';
import { addressOf, type Connection, staleAdvice } from './connection.ts';
import { exchangeOver } from './http-exchange.ts';
import { isProof, newNonce } from './service-proof.ts';
import { overSocket } from './wire.ts';

/** Bytes of the answer to a proof, which takes less than a hundred. */
const ANSWER_LIMIT = 4096;

export interface AssuranceLimits {
  /** Aborts with the error to throw as its reason. */
  signal: AbortSignal;
}

/**
 * Connects, and returns the connection once the listener is verified. Until then nothing revealing is sent: at most a
 * random number.
 * @throws RdError `ERR_NOT_RUNNING` for another program; system errors of a failed connection pass through.
 */
export async function connectVerified(connection: Connection, { signal }: AssuranceLimits): Promise<Socket> {
  const { reached } = connection;
  if (reached.by === 'proof') {
    const socket = await openConnection(connection, signal);
    if (await proves(socket, connection, reached.password, signal)) return socket;
    socket.destroy();
    if (!reached.orUser) throw unproven(connection, 'it did not prove that it is the service that wrote the file');
  }
  const socket = await openConnection(connection, signal);
  // Check after connecting: the previous listener may have been another program.
  const why = listenerMismatch(connection, { address: socket.remoteAddress, port: connection.port });
  if (why === undefined) return socket;
  socket.destroy();
  throw unproven(connection, why);
}

function openConnection({ host, port }: Connection, signal: AbortSignal): Promise<Socket> {
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

/** Requests the proof on this same connection, which stays open. Returns false for any other answer, or none. */
async function proves(socket: Socket, address: Connection, password: string, signal: AbortSignal): Promise<boolean> {
  const nonce = newNonce();
  const parts: Buffer[] = [];
  let size = 0;
  const end = () => socket.destroy(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  try {
    const headers = { Host: addressOf(address), Connection: 'keep-alive' };
    const { reusable } = await exchangeOver(
      overSocket(socket),
      { method: 'GET', path: `/v2/proof?nonce=${nonce}`, headers },
      {
        onBody(part) {
          size += part.length;
          if (size > ANSWER_LIMIT) throw new Error('proof too large');
          parts.push(part);
        },
      },
    );
    const proof = parseObject(Buffer.concat(parts).toString())?.proof;
    // A connection that closes now cannot be used again.
    return reusable && !socket.destroyed && isProof({ password, port: address.port }, nonce, proof);
  } catch {
    if (signal.aborted) throw signal.reason;
    return false;
  } finally {
    signal.removeEventListener('abort', end);
  }
}

function unproven(connection: Connection, why: string): RdError {
  const message = `another program is listening on ${addressOf(connection)}; nothing was sent to it: ${why}`;
  return new RdError('ERR_NOT_RUNNING', message, { advice: staleAdvice(connection) });
}

/** The kernel's tables of the TCP sockets in this network namespace, one per line: index, address, peer, state, …, uid. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;
const LISTENING = '0A';
/** Bytes per read: a few hundred lines. */
const CHUNK = 16_384;
/** The wildcard address. */
const ANY_4 = '00000000';
const ANY_6 = '00000000000000000000000000000000';
/** Clock ticks per second (USER_HZ). */
const TICKS = 100;
/** Tolerance for clock adjustments since a file was written, in milliseconds. */
const CLOCK_SLACK = 60_000;

/**
 * Returns the reason why the program listening at that address is not this user's application, as a clause; undefined when it is. On Linux the socket
 * shows its owner. Elsewhere, the process of the connection file must be alive and belong to this user.
 */
export function listenerMismatch(
  { file, pid, reached }: Pick<Connection, 'file' | 'pid' | 'reached'>,
  at: { address: string | undefined; port: number },
): string | undefined {
  const own = process.getuid?.();
  const users = own === undefined ? [] : listeningUsers(at.address ?? '', at.port);
  const other = users.find((uid) => uid !== own);
  if (other !== undefined) return `it belongs to another user (uid ${other})`;
  if (users.length > 0 || (reached.by === 'user' && reached.unseen === 'accepted')) return undefined;
  if (pid === undefined) return 'its owner is unknown, and the file names no process';
  return isOwnProcess(pid, file) ? undefined : `process ${pid}, named in the file, is no longer yours`;
}

/** Returns the owners of the sockets listening on that local address, the most specific ones only. Empty if the system does not show them. */
export function listeningUsers(address: string, port: number, tables: readonly string[] = TABLES): number[] {
  const exact = kernelNames(address);
  const listeners = tables.flatMap((path) => listenersIn(path, port));
  const near = listeners.filter(({ local }) => exact.includes(local));
  const found = near.length > 0 ? near : listeners.filter(({ local }) => local === ANY_4 || local === ANY_6);
  return exact.length === 0 ? [] : found.map(({ uid }) => uid);
}

function listenersIn(path: string, port: number): { local: string; uid: number }[] {
  let text: string;
  try {
    text = listeningPart(path);
  } catch {
    return [];
  }
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return text.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , uid] = line.trim().split(/\s+/);
    if (state !== LISTENING || !local.endsWith(suffix) || uid === undefined) return [];
    return [{ local: local.slice(0, -suffix.length), uid: Number(uid) }];
  });
}

/** Reads the listening sockets, which come first in the table; reading the others takes milliseconds. */
function listeningPart(path: string): string {
  const file = openSync(path, 'r');
  try {
    const part = Buffer.alloc(CHUNK);
    let text = '';
    for (;;) {
      const length = readSync(file, part);
      text += part.toString('latin1', 0, length);
      const whole = text.slice(0, text.lastIndexOf('\n'));
      const last = whole.slice(whole.lastIndexOf('\n') + 1);
      const isHead = last.trimStart().startsWith('sl');
      if (length === 0 || (!isHead && last.trim().split(/\s+/)[3] !== LISTENING)) return text;
    }
  } finally {
    closeSync(file);
  }
}

/** Formats an address like these tables: 32-bit words in little-endian order. */
function kernelNames(address: string): string[] {
  if (address === '::1') return ['00000000000000000000000001000000'];
  const bytes = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)?.slice(1).map(Number);
  if (!bytes) return [];
  const word = bytes.reverse().map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'));
  return [word.join(''), `0000000000000000FFFF0000${word.join('')}`];
}

/** Whether a process is alive, owned by this user, and on Linux started before it wrote the file. */
function isOwnProcess(pid: number, file: string | undefined): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== 'linux') return true;
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
    const begun = Date.now() - uptime() * 1000 + (ticks / TICKS) * 1000;
    const written = file === undefined ? Number.POSITIVE_INFINITY : statSync(file).mtimeMs;
    return statSync(`/proc/${pid}`).uid === process.getuid?.() && begun <= written + CLOCK_SLACK;
  } catch {
    // The process has exited, or belongs to another user.
    return false;
  }
}
