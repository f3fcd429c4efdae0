import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type TarEntry, tarOf } from './tar.ts';

/** The whole content of a container: a static program and a shell link to it. */
export function busyboxRoot(): Buffer {
  const entries: TarEntry[] = [
    { path: 'bin/busybox', content: readFileSync('/bin/busybox') },
    { path: 'bin/sh', link: 'busybox' },
  ];
  return tarOf(entries);
}

/** An archive as written by `docker save`, which containerd imports under `name`. */
export function busyboxImage(name: string): Buffer {
  const layer = busyboxRoot();
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
  });
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
  return tarOf([
    { path: 'config.json', content: config, mode: 0o644 },
    { path: 'layer.tar', content: layer, mode: 0o644 },
    { path: 'manifest.json', content: JSON.stringify(manifest), mode: 0o644 },
  ]);
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
