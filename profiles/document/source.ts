import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { type ParsedDocument, parseDocument } from '../../src/settings/parse.ts';
import { SIZE_LIMIT, tooLong } from '../../src/settings/source-text.ts';

/** What reading a source needs of its surroundings. */
export interface SourceContext {
  cwd: string;
  /** `limit` bytes and one more at most. */
  readStdin(limit: number): Promise<Uint8Array>;
}

export interface Source {
  /** As given: a path, or `-`. */
  name: string;
  /** For messages: the path as given, or `<stdin>`. */
  label: string;
  /** Absolute path; absent for standard input. */
  path?: string;
  /** At most one byte more than is accepted: that is enough to refuse it. */
  bytes: Uint8Array;
  /** Size of the whole file in bytes. */
  size: number;
}

/**
 * Reads one source, `limit` bytes of it and one more at most. Throws `ERR_IO` with the system's reason when it cannot be
 * read.
 */
export async function readSource(name: string, context: SourceContext, limit = SIZE_LIMIT): Promise<Source> {
  if (name === '-') {
    const bytes = await context.readStdin(limit);
    return { name, label: '<stdin>', bytes, size: bytes.length };
  }
  const path = resolve(context.cwd, name);
  return { name, label: name, path, ...(await readBounded(path, name, limit)) };
}

/** The document that stands for a file of which only the beginning was read, because it is too large. */
export function oversized({ bytes, size, label }: Source): ParsedDocument | undefined {
  if (size <= SIZE_LIMIT) return undefined;
  const message = `the document ${tooLong(size, SIZE_LIMIT)}`;
  const finding = { file: label, line: 1, column: 1, pointer: '', message };
  return { ...parseDocument(bytes, label), value: undefined, findings: [finding] };
}

async function readBounded(path: string, name: string, limit: number): Promise<Pick<Source, 'bytes' | 'size'>> {
  try {
    const file = await open(path, 'r');
    try {
      const stat = await file.stat();
      if (stat.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
      // Something that is no plain file has no size, and a file may grow while it is read.
      let buffer = Buffer.alloc(Math.min(limit, stat.size) + 1);
      let length = 0;
      for (;;) {
        if (length === buffer.length) {
          if (length > limit) break;
          buffer = Buffer.concat([buffer], limit + 1);
        }
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return { bytes: buffer.subarray(0, length), size: Math.max(length, stat.size) };
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new RdError('ERR_IO', `${name} could not be read: ${reason(cause)}`, {
      cause,
      advice: 'Name a file that can be read, or - for standard input.',
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
