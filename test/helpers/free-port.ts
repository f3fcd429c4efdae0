import { createServer } from 'node:net';

/**
 * Below the ports that the system gives to connections and to servers which ask for any, so that none of those takes one between
 * the look and its use. Each process of tests has a part of its own.
 */
const [FIRST, PARTS, LENGTH] = [20_000, 128, 96];
let given = 0;

/** A port of 127.0.0.1 that nothing listens on, and that is given once only. */
export async function freePort(): Promise<number> {
  while (given < LENGTH) {
    const port = FIRST + (process.pid % PARTS) * LENGTH + given++;
    if (await isFree(port)) return port;
  }
  throw new Error(`all ${LENGTH} ports of this process were given`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
