import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import { SerialQueue } from '../../../os/serial-queue.ts';
import type { Connection } from './guest.ts';

/**
 * For bash: for each path that it reads, prints `+` and the text of the file, or `-` if there is none, and a NUL. A directory has no text. Starts no
 * programs, because those are what keeps an emulated idle guest busy.
 */
export const READ_SCRIPT = `while IFS= read -r path; do
  text=
  if { exec 3< "$path"; } 2> /dev/null; then
    IFS= read -r -d '' text <&3 2> /dev/null
    exec 3<&-
    printf '+%s\\0' "$text"
  else
    printf -- '-\\0'
  fi
done
`;
const LIMIT_MS = 10_000;

/** Reads small text files of the guest through one program that stays in it. */
export interface FileReader {
  /**
   * Reads a file. Undefined if there is no such file.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`.
   */
  read(path: string): Promise<string | undefined>;
  /** Ends the program; the next read starts it again. */
  end(): void;
}

export function fileReader(guest: Pick<Connection, 'converse' | 'run'>): FileReader {
  const queue = new SerialQueue();
  let session: Duplex | undefined;

  async function readInSession(path: string): Promise<string | undefined> {
    if (session === undefined || session.destroyed) session = await guest.converse(['bash', '-c', READ_SCRIPT]);
    const answer = await response(session, path);
    return answer.startsWith('+') ? answer.slice(1) : undefined;
  }

  /** Reads a file after the session has ended; the error says why the guest cannot be reached. */
  async function readByProgram(path: string): Promise<string | undefined> {
    const { exitCode, stdout } = await guest.run(['cat', '--', path], { accept: [0, 1] });
    return exitCode === 0 ? stdout : undefined;
  }

  return {
    read: (path) => queue.run(() => readInSession(path)).catch(() => readByProgram(path)),
    end: () => void session?.destroy(),
  };
}

/** Reads the response up to the NUL. Rejects and destroys the stream if it does not arrive in time. */
function response(stream: Duplex, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const finish = () => {
      clearTimeout(timer);
      stream.off('data', take).off('close', fail);
    };
    const fail = () => {
      finish();
      stream.destroy();
      reject(new RdError('ERR_DRIVER_FAILED', `the guest did not answer about ${path}`));
    };
    const take = (chunk: Buffer) => {
      chunks.push(chunk);
      if (chunk.at(-1) !== 0) return;
      finish();
      resolve(Buffer.concat(chunks).toString('utf8').slice(0, -1));
    };
    const timer = setTimeout(fail, LIMIT_MS);
    stream.on('data', take).on('close', fail);
    stream.write(`${path}\n`);
  });
}
