import type { Socket } from 'node:net';

/** A connection as an exchange uses it. */
export interface Wire {
  /** Nothing comes from it any more. */
  readonly closed: boolean;
  /** Why it is closed, where it failed. */
  readonly failure: Error | undefined;
  /** What it calls from now on, instead of anything before. */
  read(reader: WireReader | undefined): void;
  /** The text is Latin-1. */
  write(text: string, body: string | Buffer | undefined): void;
  destroy(reason?: Error): void;
}

export interface WireReader {
  onData(data: Buffer): void;
  /** Once or more. */
  onEnd(): void;
  onError(error: unknown): void;
}

const ASCII = /^[\0-\x7f]*$/;

/** A socket, which may still be opening. Its later errors are of no interest. */
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
      // Naming an encoding makes Node load what looks for its other names.
      if (ASCII.test(text)) socket.write(text);
      else socket.write(text, 'latin1');
      if (body === undefined) return;
      socket.write(body);
      socket.uncork();
    },
    destroy: (reason) => void socket.destroy(reason),
  };
}
