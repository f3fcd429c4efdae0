import { Readable } from 'node:stream';
import { extract } from 'tar-stream';
import { expect } from 'vitest';
import type { EngineDriver, OpenImage } from '../../src/drivers/driver.ts';

/** An image that the tested engines can pull, and its contents. */
export interface SampleImage {
  /** With the registry: `docker.io/simulated/hello`. */
  name: string;
  tag: string;
  labels: Readonly<Record<string, string>>;
  file: { path: string; text: string };
  /** With the names below it, including links. */
  directory: { path: string; files: readonly string[] };
  /** A link to that directory. */
  link: string;
  /** A path whose first part is a link to something that this host has and the image does not. */
  escape: string;
}

const never = new AbortController().signal;

/** What `ImageStore` promises, for a running engine that does not have the sample yet. */
export async function checkImages(engine: EngineDriver, sample: SampleImage): Promise<void> {
  const { images } = engine;
  if (!images) throw new Error('the engine cannot be queried for images');
  const reference = `${sample.name}:${sample.tag}`;
  const open = <T>(look: (image: OpenImage) => Promise<T>) => images.open(reference, never, look);

  expect(await images.has(reference, never)).toBe(false);
  expect(await images.tags(sample.name, never)).toEqual([]);
  await expect(open(async () => undefined)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
  await expect(images.pull(`${sample.name}:no-such-tag`, never)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
  await expect(images.pull(reference, AbortSignal.abort())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });

  for (let round = 0; round < 2; round += 1) await images.pull(reference, never);
  expect(await images.has(reference, never)).toBe(true);
  expect(await images.tags(sample.name, never)).toEqual([sample.tag]);
  const before = await engine.observe(never);

  await open(async (image) => {
    expect(image.labels).toEqual(sample.labels);
    expect(await contentOf(image, sample.file.path)).toEqual({ '': sample.file.text });
    const below = Object.keys(await contentOf(image, sample.directory.path)).filter((name) => name !== '');
    expect(below.sort()).toEqual([...sample.directory.files].sort());
    expect(await contentOf(image, sample.link)).toEqual(await contentOf(image, sample.directory.path));
    expect(await image.archive('/no/such/thing')).toBeUndefined();
    expect(await image.archive(`${sample.file.path}/below`)).toBeUndefined();
    expect(await image.archive(sample.escape)).toBeUndefined();
    expect(await image.archive(`/../../..${sample.escape}`)).toBeUndefined();
  });
  // Whatever was created to read the image is gone, even after a failure.
  await expect(open(() => Promise.reject(new Error('seen enough')))).rejects.toThrow('seen enough');
  expect(await engine.observe(never)).toEqual(before);
}

/** Text by name below the topmost entry; for a link, its target. */
async function contentOf(image: OpenImage, path: string): Promise<Record<string, string>> {
  const archive = await image.archive(path);
  if (!archive) throw new Error(`the image has no ${path}`);
  const reader = extract();
  Readable.from(archive).pipe(reader);
  const found: Record<string, string> = {};
  const tops = new Set<string>();
  for await (const entry of reader) {
    const [top = '', ...rest] = entry.header.name.replace(/\/$/, '').split('/');
    tops.add(top);
    let text = entry.header.type === 'symlink' ? `→ ${entry.header.linkname}` : '';
    for await (const chunk of entry) text += String(chunk);
    found[rest.join('/')] = text;
  }
  expect(tops.size).toBe(1);
  return found;
}
