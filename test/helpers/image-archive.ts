import { createHash } from 'node:crypto';
import { tarOf } from './tar.ts';

/** What `docker save` would write for an image with one file. */
export function imageArchive(name: string): Buffer {
  const layer = tarOf([{ path: 'name.txt', content: name, mode: 0o644 }]);
  const diff = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Cmd: ['/none'] },
    rootfs: { type: 'layers', diff_ids: [diff] },
  });
  const manifest = JSON.stringify([{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]);
  return tarOf([
    { path: 'config.json', content: config, mode: 0o644 },
    { path: 'layer.tar', content: layer, mode: 0o644 },
    { path: 'manifest.json', content: manifest, mode: 0o644 },
  ]);
}
