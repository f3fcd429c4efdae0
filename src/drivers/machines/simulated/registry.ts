/** Files of an image by path: the text of a file, or where a link leads. */
export type ImageFiles = Readonly<Record<string, string | { link: string }>>;

export interface SimulatedImage {
  labels: Readonly<Record<string, string>>;
  files: ImageFiles;
}

const ICON = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><circle cx="8" cy="8" r="7"/></svg>\n';
const PAGE = '<!doctype html><title>Hello</title><p>Hello from a simulated extension.\n';

function labels(title: string): Record<string, string> {
  return {
    'org.opencontainers.image.title': title,
    'org.opencontainers.image.vendor': 'Simulated',
    'com.docker.desktop.extension.api.version': '0.3.0',
  };
}

function hello(version: string): SimulatedImage {
  const metadata = { icon: 'icon.svg', ui: { 'dashboard-tab': { title: 'Hello', root: '/ui', src: 'index.html' } } };
  const files = {
    '/metadata.json': JSON.stringify(metadata),
    '/icon.svg': ICON,
    '/ui/index.html': PAGE,
    '/ui/version.txt': version,
    '/pages': { link: '/ui' },
    '/outside': { link: '/../../etc' },
    '/ui/start.html': { link: 'index.html' },
  };
  return { labels: labels('Hello'), files };
}

function panel(version: string): SimulatedImage {
  const metadata = {
    icon: '/art/panel.svg',
    vm: { image: 'simulated/panel-service:1.0.0' },
    host: { binaries: [{ linux: [{ path: '/host/panel' }], darwin: [{ path: '/host/panel' }] }] },
  };
  const files = {
    '/metadata.json': JSON.stringify(metadata),
    '/art/panel.svg': ICON,
    '/host/panel': `#!/bin/sh\necho panel ${version}\n`,
  };
  return { labels: labels('Panel'), files };
}

/** An extension that cannot be installed: it has no icon. */
const BROKEN: SimulatedImage = { labels: {}, files: { '/metadata.json': JSON.stringify({ vm: {} }) } };

/** One whose user interface has a link out of its directory. */
const ESCAPING: SimulatedImage = {
  labels: labels('Escaping'),
  files: {
    '/metadata.json': JSON.stringify({ icon: '/icon.svg', ui: { 'dashboard-tab': { title: 'Out', root: '/ui' } } }),
    '/icon.svg': ICON,
    '/ui/index.html': { link: '../../../../etc/hostname' },
    '/etc': { link: '/../../etc' },
  },
};

/** All images of the simulated registry, by whole reference. A fixed list: no network is ever asked. */
export const SIMULATED_REGISTRY: Readonly<Record<string, SimulatedImage>> = {
  'docker.io/simulated/hello:1.0.0': hello('1.0.0'),
  'docker.io/simulated/hello:1.1.0': hello('1.1.0'),
  'docker.io/simulated/hello:latest': hello('1.1.0'),
  'docker.io/simulated/panel:v1': panel('v1'),
  'docker.io/simulated/panel:v2': panel('v2'),
  'docker.io/simulated/panel-service:1.0.0': { labels: {}, files: { '/bin/panel-service': '' } },
  'docker.io/simulated/broken:1.0.0': BROKEN,
  'docker.io/simulated/escaping:1.0.0': ESCAPING,
};
