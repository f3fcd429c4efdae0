import { isAllowed } from '../../../allowed-images/allow-list.ts';
import { RdError } from '../../../errors.ts';
import type { CompanionContainers, EngineName, ImageStore } from '../../driver.ts';
import { archiveOf } from './image-archive.ts';
import type { EngineModel, Model } from './model.ts';
import { SIMULATED_REGISTRY } from './registry.ts';
import type { ModelStore } from './store.ts';

/** Marks the containers of the model that accompany something of the service; then follow id and image. */
const COMPANION = 'companion';

/** Images of a simulated engine: what it holds is in the model, what is in them in the simulated registry. */
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
          advice: 'Add a pattern for it to containerEngine.allowedImages.patterns, or ask whoever manages that list.',
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
      return look({ labels: image.labels, archive: async (path) => archiveOf(image.files, path) });
    },
  };
}

/** Containers of the model that the service keeps running. */
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
  if (signal.aborted) throw new RdError('ERR_CANCELLED', `work with images of the simulated ${name} was called off.`);
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
