import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Connection } from './connection.ts';

/** Tables of the kernel with every TCP socket of this network, one per line: place, address, peer, state, …, user. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const;
const LISTENING = '0A';
/** Bytes read at once: some hundred lines. */
const CHUNK = 16_384;
/** Addresses that take connections to every address. */
const ANY_4 = '00000000';
const ANY_6 = '00000000000000000000000000000000';
/** Ticks of a process's age per second, for programs. */
const TICKS = 100;
/** Milliseconds by which the clock may have been corrected since a file was written. */
const CLOCK_SLACK = 60_000;

/**
 * Why a program that took a connection at that address is not this user's application, as a clause; undefined when it is. On Linux the
 * listening socket tells its user. Where nothing tells, the process of the connection file has to live and be this user's.
 */
export function notMeant(
  { file, pid, reached }: Pick<Connection, 'file' | 'pid' | 'reached'>,
  at: { address: string | undefined; port: number },
): string | undefined {
  const own = process.getuid?.();
  const users = own === undefined ? [] : listeningUsers(at.address ?? '', at.port);
  const other = users.find((uid) => uid !== own);
  if (other !== undefined) return `it is a program of another user (uid ${other})`;
  if (users.length > 0 || (reached.by === 'user' && reached.unseen === 'accepted')) return undefined;
  if (pid === undefined) return 'the system does not tell whose it is, and the file names no process';
  return isOwnProcess(pid, file) ? undefined : `the process ${pid} that the file names is not one of yours any more`;
}

/**
 * The users whose listening sockets take a connection to that address of this computer, the nearest ones alone. Empty where the system
 * does not tell.
 */
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

/** The kernel puts listening sockets first; to go through the others takes it milliseconds. */
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

/** How the tables write an address: words of four bytes, each with the lowest byte first. */
function kernelNames(address: string): string[] {
  if (address === '::1') return ['00000000000000000000000001000000'];
  const bytes = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)?.slice(1).map(Number);
  if (!bytes) return [];
  const word = bytes.reverse().map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'));
  return [word.join(''), `0000000000000000FFFF0000${word.join('')}`];
}

/** Alive, of this user, and on Linux begun before it wrote the file. */
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
    // It has ended, or is another user's.
    return false;
  }
}
