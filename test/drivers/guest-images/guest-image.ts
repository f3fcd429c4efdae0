import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from '../../../src/drivers/guest-images/architecture.ts';
import type { GuestImage } from '../../../src/drivers/guest-images/image.ts';
import type { ImageStore } from '../../../src/drivers/guest-images/store.ts';
import { diskHeader } from '../../helpers/disk-header.ts';

const never = new AbortController().signal;

/** An image of small files, as a build would leave it. `content` makes it distinct, `disk` is how its disk begins. */
export async function sampleImage(
  store: ImageStore,
  content = 'a',
  created = '2026-11-01T12:00:00.000Z',
  architecture: Architecture = 'x86_64',
  disk = diskHeader(),
): Promise<GuestImage> {
  const draft = await store.draft();
  mkdirSync(draft.directory, { recursive: true });
  for (const name of ['vmlinuz', 'initrd', 'disk.qcow2']) {
    const text = Buffer.from(`${name} ${content}\n`.repeat(1000));
    const begin = name === 'disk.qcow2' ? disk : Buffer.alloc(0);
    writeFileSync(join(draft.directory, name), Buffer.concat([begin, text.subarray(begin.length)]));
  }
  const facts = { name: `debian-${content}`, architecture, rootBytes: 3 * 1024 ** 3, created };
  return draft.keep(facts, { kernel: 'vmlinuz', initrd: 'initrd', disk: 'disk.qcow2' }, never);
}
