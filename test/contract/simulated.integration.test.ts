import type { EngineName } from '../../src/drivers/driver.ts';
import { SIMULATED_REGISTRY } from '../../src/drivers/machines/simulated/images.ts';
import { simulated } from '../../src/drivers/machines/simulated/index.ts';
import type { EngineModel } from '../../src/drivers/machines/simulated/model.ts';
import { fileStore } from '../../src/drivers/machines/simulated/store.ts';
import { driverSuite } from './driver-suite.ts';

/** Changes the model behind the driver's back, like a crash or a client of the engine. */
function change(directory: string, name: EngineName, edit: (engine: EngineModel) => Partial<EngineModel>): void {
  const store = fileStore(directory);
  const model = store.load();
  const engine = model.engines[name];
  store.save({ ...model, engines: { ...model.engines, [name]: { ...engine, ...edit(engine) } } });
}

driverSuite({
  factory: simulated,
  env: { RDCTL_SIMULATED_LATENCY_MS: '0' },
  async crash(_driver, name, directory) {
    change(directory, name, () => ({ process: { state: 'hung' } }));
  },
  data: {
    async put(_driver, name, directory) {
      change(directory, name, ({ volumes }) => ({ volumes: [...volumes, 'kept'] }));
    },
    async has(_driver, name, directory) {
      return fileStore(directory).load().engines[name].volumes.includes('kept');
    },
  },
  traces: async () => [],
  companionImage: async () => 'docker.io/simulated/panel-service:1.0.0',
  async sampleImage() {
    const image = SIMULATED_REGISTRY['docker.io/simulated/hello:1.0.0'];
    return {
      name: 'docker.io/simulated/hello',
      tag: '1.0.0',
      labels: image?.labels ?? {},
      file: { path: '/ui/version.txt', text: '1.0.0' },
      directory: { path: '/ui', files: ['index.html', 'start.html', 'version.txt'] },
      link: '/pages',
      escape: '/outside/passwd',
    };
  },
  registryImages: async () => ['docker.io/simulated/hello:1.0.0', 'docker.io/simulated/panel:v1'],
  cluster: { web: { namespace: 'default', service: 'web', port: 80 }, webName: 'http' },
});
