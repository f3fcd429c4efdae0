import { connect, type Socket } from 'node:net';
import type { Clock } from '../../../os/clock.ts';
import type { LineListener } from '../../shell.ts';

/** Connections to running programs, held only to detect their end immediately. */
export interface Lifelines {
  /**
   * Holds one connection per Unix socket, and only while there is a watcher. Resolves when it is open or has failed. `hello` keeps the program from
   * closing an idle connection; `listen` is called if this opens a connection, and returns the listener for its data.
   */
  hold(path: string, hello?: string | Uint8Array, listen?: () => LineListener): Promise<void>;
  /** Returns the number of connections held to a socket: 1 or 0. */
  held(path: string): number;
  /** Calls back as soon as a held connection ends. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
}

/** Limits reconnects to a program that closes every connection at once: a burst of this many, then a pause. */
const MAX_BURST = 3;
const SHORT_MS = 1_000;
const PAUSE_MS = 5_000;

export function lifelines({ now }: Pick<Clock, 'now'>): Lifelines {
  const watchers = new Set<() => void>();
  const held = new Map<string, Socket>();
  /** Time of the last connection to a path, and the length of the current burst of reconnects. */
  const attempts = new Map<string, { at: number; short: number }>();

  function mayConnect(path: string): boolean {
    const last = attempts.get(path);
    const passed = last === undefined ? Number.POSITIVE_INFINITY : now() - last.at;
    const short = last !== undefined && passed < SHORT_MS ? last.short + 1 : 1;
    if (short > MAX_BURST || (last?.short === MAX_BURST && passed < PAUSE_MS)) return false;
    attempts.set(path, { at: now(), short });
    return true;
  }

  function ended(path: string, socket: Socket): void {
    if (held.get(path) !== socket) return;
    held.delete(path);
    socket.destroy();
    for (const changed of [...watchers]) changed();
  }

  return {
    hold(path, hello, listen) {
      if (watchers.size === 0 || held.has(path) || !mayConnect(path)) return Promise.resolve();
      return new Promise((resolve) => {
        const socket = connect({ path });
        // Must not keep the process alive.
        socket.unref();
        socket.once('connect', () => {
          if (watchers.size === 0) socket.destroy();
          else held.set(path, socket);
          if (hello !== undefined) socket.write(hello);
          resolve();
        });
        for (const event of ['end', 'error', 'close']) {
          socket.on(event, () => {
            ended(path, socket);
            resolve();
          });
        }
        if (listen === undefined) return void socket.resume();
        const listener = listen();
        socket.on('data', (bytes: Buffer) => listener.heard(bytes));
        socket.once('close', () => listener.ended());
      });
    },
    held: (path) => (held.has(path) ? 1 : 0),
    watch(changed) {
      watchers.add(changed);
      return () => {
        watchers.delete(changed);
        if (watchers.size > 0) return;
        const sockets = [...held.values()];
        held.clear();
        for (const socket of sockets) socket.destroy();
      };
    },
  };
}
