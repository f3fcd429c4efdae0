import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { tarReader } from '../../../src/os/tar.ts';

const ORDINARY: readonly unknown[] = ['file', 'contiguous-file', 'directory', 'symlink', 'link'];

/** A tar archive without devices and pipes: as root, tar would create whatever device the machine names. */
export function withoutDevices(archive: AsyncIterable<Uint8Array>, onLeftOut: () => void): Readable {
  const reader = tarReader();
  const writer = pack();
  const fail = (error: unknown) => writer.destroy(error instanceof Error ? error : new Error(String(error)));

  async function copyEntries(): Promise<void> {
    for await (const entry of reader) {
      const { header } = entry;
      if (!ORDINARY.includes(header.type)) {
        onLeftOut();
        entry.resume();
      } else {
        await pipeline(entry, writer.entry(header));
      }
    }
    writer.finalize();
  }

  const source = Readable.from(archive);
  source.on('error', (error) => reader.destroy(error));
  source.pipe(reader);
  copyEntries().catch(fail);
  return Readable.from(writer);
}
