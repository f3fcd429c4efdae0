import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';

/** One archive entry: a file with content, or a symbolic link. */
export interface TarEntry {
  path: string;
  content?: string | Uint8Array;
  link?: string;
  /** Permission bits; 0755 by default. */
  mode?: number;
}

/** An entry with any header, such as a hard link or a device, and the text of a file. */
export type AnyEntry = Partial<Header> & { name: string; text?: string };

/** An archive of these entries. */
export function packed(entries: readonly AnyEntry[]): Promise<Buffer> {
  const out = pack();
  for (const { text, ...header } of entries) {
    if (text === undefined) out.entry(header);
    else out.entry(header, text);
  }
  out.finalize();
  return buffer(out);
}

const BLOCK = 512;

/** A ustar archive. Paths are at most 100 bytes long. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '');
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(entry, content.length), content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header({ path, link, mode = 0o755 }: TarEntry, size: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`too long for this archive: ${path}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number, at: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at);
  block.write(path, 0);
  octal(mode, 7, 100);
  octal(0, 7, 108);
  octal(0, 7, 116);
  octal(size, 11, 124);
  octal(0, 11, 136);
  block.write(link === undefined ? '0' : '2', 156);
  block.write(link ?? '', 157);
  block.write('ustar\0' + '00', 257);
  // The checksum counts its own field as blanks.
  block.write(' '.repeat(8), 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
