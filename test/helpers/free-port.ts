import { createServer, type Server } from 'node:net';

/**
 * Below the ports that the system gives to connections and to servers which ask for any, so that none of those takes one between
 * the look and its use. Each process of tests has a part of its own, which it holds by listening on the port of the part in `LOCKS`.
 */
const [FIRST, PARTS, LENGTH] = [20_000, 128, 96];
const LOCKS = FIRST - PARTS;
let part: Promise<number> | undefined;
let given = 0;

/** A port of 127.0.0.1 that nothing listens on, and that is given once only. */
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
