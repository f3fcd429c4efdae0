import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { busyboxRoot } from './busybox.ts';
import { tarOf } from './tar.ts';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const INDEX = 'application/vnd.docker.distribution.manifest.list.v2+json';
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

export interface RegistryImage {
  /** `repository:tag`. */
  name: string;
  /** With busybox, or with a single file. */
  content: 'busybox' | 'file';
  /** Behind an index, as images for several platforms are. */
  index?: boolean;
}

/** Pushes an image to a registry over its API, without an engine. Returns the digest of the tag. */
export async function putImage(registry: string, { name, content, index = false }: RegistryImage): Promise<string> {
  const [repository = '', tag = ''] = name.split(':');
  const root = content === 'busybox' ? busyboxRoot() : tarOf([{ path: 'name.txt', content: name, mode: 0o644 }]);
  const layer = gzipSync(root);
  const config = Buffer.from(
    JSON.stringify({
      architecture: ARCHITECTURE,
      os: 'linux',
      config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(root)] },
    }),
  );
  for (const blob of [layer, config]) await putBlob(registry, repository, blob);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: part('application/vnd.docker.container.image.v1+json', config),
      layers: [part('application/vnd.docker.image.rootfs.diff.tar.gzip', layer)],
    }),
  );
  await putManifest(registry, repository, index ? digestOf(manifest) : tag, MANIFEST, manifest);
  if (!index) return digestOf(manifest);
  const platform = { os: 'linux', architecture: ARCHITECTURE };
  const list = Buffer.from(
    JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [{ ...part(MANIFEST, manifest), platform }] }),
  );
  await putManifest(registry, repository, tag, INDEX, list);
  return digestOf(list);
}

async function putBlob(registry: string, repository: string, blob: Buffer): Promise<void> {
  const begun = await fetch(`http://${registry}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const place = new URL(begun.headers.get('location') ?? '', `http://${registry}`);
  place.searchParams.set('digest', digestOf(blob));
  await expectCreated(place.href, { 'content-type': 'application/octet-stream' }, blob);
}

async function putManifest(registry: string, repository: string, reference: string, type: string, body: Buffer) {
  await expectCreated(`http://${registry}/v2/${repository}/manifests/${reference}`, { 'content-type': type }, body);
}

async function expectCreated(url: string, headers: Record<string, string>, body: Buffer): Promise<void> {
  const answer = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(body) });
  if (answer.status !== 201) throw new Error(`PUT ${url}: ${answer.status} ${await answer.text()}`);
}

function part(mediaType: string, content: Buffer) {
  return { mediaType, size: content.length, digest: digestOf(content) };
}

function digestOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
