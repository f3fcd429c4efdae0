import type { Wire, WireReader } from './wire.ts';

/** Sockets of Bun, the runtime of the standalone file (https://bun.com/docs/runtime/networking/tcp). */
declare const Bun: { connect(options: { unix: string; socket: Handlers }): Promise<RuntimeSocket> };

interface RuntimeSocket {
  /** Writes data. Returns how many bytes were taken; `drain` follows when there is room for more. */
  write(data: Uint8Array): number;
  terminate(): void;
}

interface Handlers {
  open(socket: RuntimeSocket): void;
  data(socket: RuntimeSocket, data: Buffer): void;
  drain(): void;
  end(): void;
  close(socket: RuntimeSocket, error?: Error): void;
  error(socket: RuntimeSocket, error: Error): void;
  connectError(socket: RuntimeSocket, error: Error): void;
}

/** Connects to the socket at a path through the standalone file's runtime: loading its `node:net` takes a seventh of a short command's time. */
export function runtimeWire(path: string): Wire {
  let socket: RuntimeSocket | undefined;
  let reader: WireReader | undefined;
  let waiting = Buffer.alloc(0);
  let closed = false;
  let failure: Error | undefined;

  function flush(): void {
    if (socket && waiting.length > 0) waiting = waiting.subarray(Math.max(0, socket.write(waiting)));
  }
  function end(error?: Error): void {
    if (closed) return;
    closed = true;
    failure = error;
    if (error) reader?.onError(error);
    else reader?.onEnd();
  }

  const connecting = Bun.connect({
    unix: path,
    socket: {
      open(opened) {
        socket = opened;
        if (closed) opened.terminate();
        else flush();
      },
      data: (_, data) => reader?.onData(data),
      drain: flush,
      end: () => end(),
      close: (_, error) => end(error),
      error: (_, error) => end(error),
      connectError: (_, error) => end(error),
    },
  });
  connecting.catch((error: unknown) => end(error instanceof Error ? error : new Error(String(error))));
  return {
    get closed() {
      return closed;
    },
    get failure() {
      return failure;
    },
    read(next) {
      reader = next;
    },
    write(text, body) {
      const parts = [waiting, Buffer.from(text, 'latin1'), ...(body === undefined ? [] : [Buffer.from(body)])];
      waiting = Buffer.concat(parts);
      flush();
    },
    destroy(reason) {
      end(reason);
      socket?.terminate();
    },
  };
}
