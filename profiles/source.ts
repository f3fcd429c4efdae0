import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RdError } from '../src/errors.ts';

/** Largest document that is read, in bytes. The check comes before anything looks at the content. */
export const MAX_BYTES = 1024 * 1024;

/** What reading a source needs of its surroundings. */
export interface SourceContext {
  cwd: string;
  readStdin(): Promise<Uint8Array>;
}

export interface Source {
  /** As given: a path, or `-`. */
  name: string;
  /** For messages: the path as given, or `<stdin>`. */
  label: string;
  /** Absolute path; absent for standard input. */
  path?: string;
  /** At most `MAX_BYTES` + 1 bytes: one more than allowed is enough to refuse it. */
  bytes: Uint8Array;
}

/** Reads one `-f` source. Throws `ERR_IO` with the system's reason when it cannot be read. */
export async function readSource(name: string, context: SourceContext): Promise<Source> {
  if (name === '-') return { name, label: '<stdin>', bytes: await context.readStdin() };
  const path = resolve(context.cwd, name);
  return { name, label: name, path, bytes: await readBounded(path, name) };
}

async function readBounded(path: string, name: string): Promise<Uint8Array> {
  try {
    const file = await open(path, 'r');
    try {
      if ((await file.stat()).isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
      const buffer = Buffer.alloc(MAX_BYTES + 1);
      let length = 0;
      while (length < buffer.length) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return buffer.subarray(0, length);
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new RdError('ERR_IO', `${name} could not be read: ${reason(cause)}`, {
      cause,
      advice: 'Give a YAML or JSON file with -f FILE, or -f - for standard input.',
    });
  }
}

function reason(cause: unknown): string {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return cause instanceof Error ? cause.message : String(cause);
}
