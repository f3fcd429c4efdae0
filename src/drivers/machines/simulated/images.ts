import { pack } from 'tar-stream';
import { isAllowed } from '../../../allowed-images/allow-list.ts';
import { RdError } from '../../../errors.ts';
import type { CompanionContainers, EngineName, ImageStore } from '../../driver.ts';
import { readLayers } from '../../image-layers/layers.ts';
import type { EngineModel, Model } from './model.ts';
import type { ModelStore } from './store.ts';

/** Marks service-managed containers of the model; followed by id and image. */
const COMPANION = 'companion';

/** Returns the images of a simulated engine: the model lists them, the simulated registry holds their content. */
export function simulatedImages(name: EngineName, store: ModelStore): ImageStore {
  return {
    has: async (reference, signal) => running(name, store, signal).images.includes(reference),
    async pull(reference, signal) {
      const { images, process } = running(name, store, signal);
      if (!Object.hasOwn(SIMULATED_REGISTRY, reference)) {
        throw new RdError('ERR_NOT_FOUND', `the simulated registry has no image ${reference}`);
      }
      const rule = process.state === 'running' ? process.spec.allowedImages : { enabled: false, patterns: [] };
      if (rule.enabled && !isAllowed(rule.patterns, reference)) {
        throw new RdError('ERR_FORBIDDEN', `${reference} is not among the allowed images`, {
          advice:
            'Add a pattern for it to containerEngine.allowedImages.patterns, or ask the administrator of that list.',
        });
      }
      if (!images.includes(reference)) change(name, store, () => ({ images: [...images, reference] }));
    },
    async tags(image, signal) {
      return tagsIn(running(name, store, signal).images, image);
    },
    offeredTags: async (image) => tagsIn(Object.keys(SIMULATED_REGISTRY), image),
    async open(reference, signal, look) {
      const { images } = running(name, store, signal);
      const image = images.includes(reference) ? SIMULATED_REGISTRY[reference] : undefined;
      if (!image) throw new RdError('ERR_NOT_FOUND', `the simulated ${name} has no image ${reference}`);
      return look({ labels: image.labels, archive: await readLayers(1, () => layerOf(image.files)) });
    },
  };
}

/** Returns the containers of the model that the service keeps running. */
export function simulatedCompanions(name: EngineName, store: ModelStore): CompanionContainers {
  const prefix = (id: string) => `${COMPANION} ${id} `;
  const others = (id: string, { containers }: EngineModel) =>
    containers.filter((container) => !container.name.startsWith(prefix(id)));
  return {
    async list(signal) {
      return running(name, store, signal).containers.flatMap((container) => {
        const [mark, id = '', image = ''] = container.name.split(' ');
        return mark === COMPANION ? [{ id, image }] : [];
      });
    },
    async ensure({ id, image }, signal) {
      const { images } = running(name, store, signal);
      if (!images.includes(image)) throw new RdError('ERR_NOT_FOUND', `the simulated ${name} has no image ${image}`);
      const container = { name: `${prefix(id)}${image}`, running: true };
      change(name, store, (engine) => ({ containers: [...others(id, engine), container] }));
    },
    async remove(id, signal) {
      running(name, store, signal);
      change(name, store, (engine) => ({ containers: others(id, engine) }));
    },
  };
}

function running(name: EngineName, store: ModelStore, signal: AbortSignal): EngineModel {
  if (signal.aborted) throw new RdError('ERR_CANCELLED', `work with images of the simulated ${name} was canceled.`);
  const engine = store.load().engines[name];
  if (engine.process.state === 'running') return engine;
  throw new RdError('ERR_DRIVER_FAILED', `the simulated ${name} does not run.`);
}

function change(name: EngineName, store: ModelStore, edit: (engine: EngineModel) => Partial<EngineModel>): void {
  const model: Model = store.load();
  const engine = model.engines[name];
  store.save({ ...model, engines: { ...model.engines, [name]: { ...engine, ...edit(engine) } } });
}

function tagsIn(references: readonly string[], name: string): string[] {
  return references.flatMap((reference) =>
    reference.startsWith(`${name}:`) ? [reference.slice(name.length + 1)] : [],
  );
}

/** Yields the files of an image as its only layer. */
async function* layerOf(files: ImageFiles): AsyncGenerator<Uint8Array, void> {
  const layer = pack();
  for (const [name, content] of Object.entries(files)) {
    if (typeof content === 'string') layer.entry({ name, mode: content.startsWith('#!') ? 0o755 : 0o644 }, content);
    else layer.entry({ name, type: 'symlink', linkname: content.link });
  }
  layer.finalize();
  for await (const chunk of layer) if (chunk instanceof Uint8Array) yield chunk;
}

/** Files of an image by path: file content or link target. */
type ImageFiles = Readonly<Record<string, string | { link: string }>>;

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

/** An extension whose user interface has a link out of its directory. */
const ESCAPING: SimulatedImage = {
  labels: labels('Escaping'),
  files: {
    '/metadata.json': JSON.stringify({ icon: '/icon.svg', ui: { 'dashboard-tab': { title: 'Out', root: '/ui' } } }),
    '/icon.svg': ICON,
    '/ui/index.html': { link: '../../../../etc/hostname' },
    '/etc': { link: '/../../etc' },
  },
};

/** All images of the simulated registry, by full reference. Fixed: no network access. */
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
