import { createServer, type Server } from 'node:net';

/**
 * Below the ephemeral ports, so that no connection or server takes one between the check and its use. Each test process has a
 * range of its own, which it reserves by listening on a port in `LOCKS`.
 */
const [FIRST, PARTS, LENGTH] = [20_000, 128, 96];
const LOCKS = FIRST - PARTS;
let part: Promise<number> | undefined;
let given = 0;

/** A port of 127.0.0.1 that nothing listens on, returned only once. */
export async function freePort(): Promise<number> {
  part ??= ownPart();
  const start = FIRST + (await part) * LENGTH;
  while (given < LENGTH) {
    const port = start + given++;
    if (await isFree(port)) return port;
  }
  throw new Error(`all ${LENGTH} ports of this process were given`);
}

/** Whether nothing listens on a port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
  const server = await listener(port);
  if (server) await new Promise((closed) => server.close(closed));
  return server !== undefined;
}

async function ownPart(): Promise<number> {
  for (let tried = 0; tried < PARTS; tried += 1) {
    const candidate = (process.pid + tried) % PARTS;
    const lock = await listener(LOCKS + candidate);
    if (lock) {
      lock.unref();
      return candidate;
    }
  }
  throw new Error(`${PARTS} processes of tests run at once`);
}

function listener(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
