import { randomBytes } from 'node:crypto';
import { chmod, copyFile, mkdir, open, rename, rm } from 'node:fs/promises';
import { connect, type TcpSocketConnectOpts } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import { ioError } from '../../../storage/io-error.ts';

/** See `Shell.copyIn`. */
export async function copyIn(from: string, to: string, mode: number, signal: AbortSignal): Promise<void> {
  const temporary = join(dirname(to), `.${basename(to)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copyFile(from, temporary);
    await chmod(temporary, mode);
    const handle = await open(temporary, 'r');
    await handle.sync().finally(() => handle.close());
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `copying to ${to} was cancelled`);
    await rename(temporary, to);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw cause instanceof RdError ? cause : ioError('write', to, cause);
  }
}

/** See `Shell.dial`. */
export function connectTo(to: Pick<TcpSocketConnectOpts, 'host' | 'port'>, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(cancelled());
    const socket = connect({ ...to, allowHalfOpen: true, noDelay: true });
    const giveUp = () => {
      socket.destroy();
      reject(cancelled());
    };
    signal.addEventListener('abort', giveUp, { once: true });
    socket.once('connect', () => {
      signal.removeEventListener('abort', giveUp);
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (cause) => {
      signal.removeEventListener('abort', giveUp);
      reject(new RdError('ERR_NOT_READY', `nobody answers on ${to.host}:${to.port}: ${cause.message}`, { cause }));
    });
  });

  function cancelled(): RdError {
    return new RdError('ERR_CANCELLED', `connecting to ${to.host}:${to.port} was cancelled`);
  }
}
