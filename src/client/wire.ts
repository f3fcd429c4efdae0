import type { Socket } from 'node:net';

/** A connection, as seen by an exchange. */
export interface Wire {
  /** Whether the connection delivers nothing any more. */
  readonly closed: boolean;
  /** The error that closed the connection, if it failed. */
  readonly failure: Error | undefined;
  /** Replaces the reader of the connection. */
  read(reader: WireReader | undefined): void;
  /** Writes a head, which is Latin-1, and a body. */
  write(text: string, body: string | Buffer | undefined): void;
  destroy(reason?: Error): void;
}

export interface WireReader {
  onData(data: Buffer): void;
  /** Called when the connection ends, once or more. */
  onEnd(): void;
  onError(error: unknown): void;
}

const ASCII = /^[\0-\x7f]*$/;

/** Wraps a socket, which may still be opening. Its later errors are ignored. */
export function overSocket(socket: Socket): Wire {
  let stop = () => undefined as unknown;
  socket.on('error', () => undefined);
  return {
    get closed() {
      return socket.destroyed;
    },
    get failure() {
      return socket.errored ?? undefined;
    },
    read(reader) {
      stop();
      stop = () => undefined;
      if (!reader) return;
      const { onData, onEnd, onError } = reader;
      socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onError);
      stop = () => socket.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onError);
    },
    write(text, body) {
      if (body !== undefined) socket.cork();
      // Naming an encoding makes Node load the code that looks for its aliases.
      if (ASCII.test(text)) socket.write(text);
      else socket.write(text, 'latin1');
      if (body === undefined) return;
      socket.write(body);
      socket.uncork();
    },
    destroy: (reason) => void socket.destroy(reason),
  };
}
