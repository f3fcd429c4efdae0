import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { type TarEntry, tarOf } from './tar.ts';

/** An image from scratch: no program, no command, only files. Each list of entries is a layer. */
export interface ScratchImage {
  labels?: Record<string, string>;
  command?: string[];
  layers: TarEntry[][];
}

const TYPES = 'application/vnd.docker';

/** Pushes an image to a registry on the loopback interface, without an engine. */
export async function pushScratch(
  host: string,
  name: string,
  tag: string,
  { labels, command, layers }: ScratchImage,
): Promise<void> {
  const base = `http://${host}/v2/${name}`;
  const archives = layers.map((entries) => tarOf(entries));
  const blobs = archives.map((archive) => gzipSync(archive));
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { ...(labels ? { Labels: labels } : {}), ...(command ? { Cmd: command } : {}) },
      rootfs: { type: 'layers', diff_ids: archives.map(digestOf) },
    }),
  );
  for (const blob of [config, ...blobs]) await pushBlob(base, blob);
  const manifest = {
    schemaVersion: 2,
    mediaType: `${TYPES}.distribution.manifest.v2+json`,
    config: { mediaType: `${TYPES}.container.image.v1+json`, size: config.length, digest: digestOf(config) },
    layers: blobs.map((blob) => ({
      mediaType: `${TYPES}.image.rootfs.diff.tar.gzip`,
      size: blob.length,
      digest: digestOf(blob),
    })),
  };
  const response = await fetch(`${base}/manifests/${tag}`, {
    method: 'PUT',
    headers: { 'content-type': manifest.mediaType },
    body: JSON.stringify(manifest),
  });
  if (!response.ok) throw new Error(`pushing ${name}:${tag}: ${response.status} ${await response.text()}`);
}

async function pushBlob(base: string, blob: Buffer): Promise<void> {
  const begun = await fetch(`${base}/blobs/uploads/`, { method: 'POST' });
  const place = new URL(begun.headers.get('location') ?? '', base);
  place.searchParams.set('digest', digestOf(blob));
  const response = await fetch(place, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: new Uint8Array(blob),
  });
  if (response.status !== 201) throw new Error(`pushing a blob: ${response.status} ${await response.text()}`);
}

function digestOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
