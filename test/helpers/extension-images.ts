import { pushScratch, type ScratchImage } from './registry-push.ts';
import type { TarEntry } from './tar.ts';

const ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>';
const LABELS = {
  'org.opencontainers.image.title': 'Sample',
  'com.docker.desktop.extension.api.version': '0.3.0',
};

/** An extension image as published, `FROM scratch`. `metadata` and `files` replace the defaults. */
export interface ExtensionImage {
  version?: string;
  labels?: Record<string, string> | 'none';
  metadata?: unknown;
  /** In place of icon, user interface and program. */
  files?: TarEntry[];
  command?: string[];
}

const METADATA = {
  icon: 'icon.svg',
  ui: { 'dashboard-tab': { title: 'Sample', root: '/ui', src: 'index.html' } },
  host: { binaries: [{ linux: [{ path: '/host/sample' }], darwin: [{ path: '/host/sample' }] }] },
};

export function extensionFiles(version = '1'): TarEntry[] {
  return [
    { path: 'icon.svg', content: ICON, mode: 0o644 },
    { path: 'ui/index.html', content: `<p>${version}</p>`, mode: 0o644 },
    { path: 'ui/start.html', link: 'index.html' },
    { path: 'host/sample', content: `#!/bin/sh\necho ${version}\n` },
  ];
}

export async function pushExtension(
  host: string,
  name: string,
  tag: string,
  image: ExtensionImage = {},
): Promise<void> {
  const { version = tag, labels = LABELS, metadata = METADATA, files = extensionFiles(version), command } = image;
  const text = typeof metadata === 'string' ? metadata : JSON.stringify(metadata);
  const scratch: ScratchImage = {
    ...(labels === 'none' ? {} : { labels }),
    ...(command ? { command } : {}),
    layers: [[{ path: 'metadata.json', content: text, mode: 0o644 }], files],
  };
  await pushScratch(host, name, tag, scratch);
}
