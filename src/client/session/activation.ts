import { lstatSync } from 'node:fs';
import { request } from 'node:http';
import { dirname } from 'node:path';
import { RdError } from '../../errors.ts';
import { isOwnDirectory } from '../../os/user-directories.ts';
import { activationSocket } from '../../state/unit-name.ts';
import type { ConnectionFlags } from '../discovery.ts';
import { namesService, placesOf, type SessionIo } from './home.ts';

/** Milliseconds that a service may take to start and answer. */
const START_LIMIT_MS = 60_000;

/** Returns whether the service manager has started the service of this home, which was not running, because of this use. */
export async function startForUse(error: unknown, globals: ConnectionFlags, io: SessionIo): Promise<boolean> {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_RUNNING' || namesService(globals, io)) return false;
  return startByUse(io);
}

/**
 * Connects to the socket by which systemd starts the service of this home (`rdctl service install --on-first-use`), and waits until that service
 * answers. Returns false without such a socket, and when nothing answers there.
 */
async function startByUse(io: SessionIo): Promise<boolean> {
  const socketPath = activationSocket(placesOf(io));
  if (socketPath === undefined || !isOwnSocket(socketPath)) return false;
  io.err('Starting the service.\n');
  return new Promise((resolve) => {
    // The reply does not matter: it is sent once the connection file is written.
    const asked = request(
      { socketPath, path: '/v1/about', headers: { Host: 'localhost' }, signal: io.signal },
      (reply) => {
        reply.resume();
        resolve(true);
      },
    );
    asked.setTimeout(START_LIMIT_MS, () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });
}

/** Whether a path is a socket in a directory that only this user can write. */
function isOwnSocket(path: string): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isSocket() === true && facts.uid === process.getuid?.() && isOwnDirectory(dirname(path));
}
