import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Returns two connected sockets, of which nothing is read here: each is for the standard streams of a program, so that the two programs talk
 * directly. Node can also make the pipes of a child from such a pair, but not every runtime passes them on.
 */
export async function socketPair(): Promise<[Socket, Socket]> {
  // Private, so that nobody else connects.
  const folder = await mkdtemp(join(tmpdir(), 'rdctl-pair-'));
  // On Windows a pipe has no directory, and its name is the secret.
  const path =
    process.platform === 'win32' ? `\\\\.\\pipe\\rdctl-${randomBytes(16).toString('hex')}` : join(folder, 's');
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(path);
    await once(server, 'listening');
    const accepted = once(server, 'connection');
    const one = connect(path);
    one.pause();
    await once(one, 'connect');
    const [other] = await accepted;
    return [one, other];
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}
