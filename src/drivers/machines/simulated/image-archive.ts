import { posix } from 'node:path';
import { pack } from 'tar-stream';
import type { ImageFiles } from './registry.ts';

const MOST_LINKS = 40;

/** A file or directory of an image as a tar archive; links are followed within the image. Undefined where there is none. */
export function archiveOf(files: ImageFiles, path: string): AsyncIterable<Uint8Array> | undefined {
  const found = resolve(files, path, 0);
  if (found === undefined) return undefined;
  const out = pack();
  const top = posix.basename(found) || 'root';
  const content = files[found];
  if (typeof content === 'string') {
    out.entry({ name: top, mode: 0o644 }, content);
  } else {
    out.entry({ name: `${top}/`, type: 'directory' });
    for (const [file, value] of Object.entries(files)) {
      if (!file.startsWith(`${found}/`)) continue;
      const name = `${top}${file.slice(found.length)}`;
      if (typeof value === 'string') out.entry({ name, mode: value.startsWith('#!') ? 0o755 : 0o644 }, value);
      else out.entry({ name, type: 'symlink', linkname: value.link });
    }
  }
  out.finalize();
  return bytes(out);
}

async function* bytes(out: AsyncIterable<unknown>): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of out) if (chunk instanceof Uint8Array) yield chunk;
}

/** The path without links, or undefined where nothing is. The root is the image's. */
function resolve(files: ImageFiles, path: string, links: number): string | undefined {
  if (links > MOST_LINKS) return undefined;
  let at = '';
  const parts = posix.normalize(`/${path}`).split('/').slice(1);
  for (const [index, part] of parts.entries()) {
    if (part === '') continue;
    at = `${at}/${part}`;
    const value = files[at];
    if (typeof value === 'object') {
      const rest = parts.slice(index + 1).join('/');
      return resolve(files, posix.join(posix.resolve(posix.dirname(at), value.link), rest), links + 1);
    }
    const isDirectory = value === undefined && Object.keys(files).some((file) => file.startsWith(`${at}/`));
    if (value === undefined && !isDirectory) return undefined;
    if (typeof value === 'string' && index < parts.length - 1) return undefined;
  }
  return at;
}
