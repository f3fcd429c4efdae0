import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { endpointOf, FOREVER, type HostInstance, hostInstance } from './host-instance.ts';
import { type LoopbackRegistry, loopbackRegistry } from './loopback-registry.ts';
import { putImage } from './registry-image.ts';

/** A real dockerd that may pull `good:1` from a registry on this computer, which also has `evil:1`. */
export interface RestrictedMoby {
  registry: LoopbackRegistry;
  instance: HostInstance;
  endpoint: string;
  /** Stops both. @returns what the engine left on this host. */
  close(): Promise<string[]>;
}

/** @param evil the content of `evil:1`: a file, or a program that can be run. */
export async function restrictedMoby(evil: 'file' | 'busybox'): Promise<RestrictedMoby> {
  const registry = await loopbackRegistry();
  await putImage(registry.host, { name: 'good:1', content: 'file' });
  await putImage(registry.host, { name: 'evil:1', content: evil });
  const instance = await hostInstance();
  const { machine, engines } = instance.driver;
  await machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
  const allowedImages = { enabled: true, patterns: [`${registry.host}/good:1`] };
  await engines.moby.perform({ do: 'start', spec: { ...engineSpec('moby'), allowedImages } }, FOREVER);
  return {
    registry,
    instance,
    endpoint: await endpointOf(instance.driver, 'moby'),
    async close() {
      const left = await instance.close();
      await registry.close();
      return left;
    },
  };
}
