import fc from 'fast-check';
import type { ClusterSpec, EngineName, EngineSpec, MachineSpec } from '../../src/drivers/driver.ts';
import {
  type ClusterModel,
  type EngineModel,
  emptyModel,
  type Model,
} from '../../src/drivers/machines/simulated/model.ts';
import type { JsonValue } from '../../src/json.ts';
import { clusterSpec, engineSpec, machineSpec, type Observed } from '../../src/plan/backend.ts';
import { observe } from '../../src/reconcile/observe.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../../src/settings/settings.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';

/** The Linux defaults with some settings changed. */
export function settingsWith(values: Partial<Record<SettingPath, JsonValue>> = {}): Settings {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  for (const [path, value] of Object.entries(values)) setLeaf(settings, path, value);
  return settings;
}

/** A few values each, so that two draws often coincide. All combinations are valid for the simulated driver. */
const VALUES: Partial<Record<SettingPath, readonly JsonValue[]>> = {
  'application.adminAccess': [false, true],
  'application.debug': [false, true],
  'containerEngine.name': ['moby', 'containerd'],
  'containerEngine.mobyStorageDriver': ['auto', 'snapshotter'],
  'containerEngine.allowedImages.enabled': [false, true],
  'containerEngine.allowedImages.patterns': [[], ['registry.example/*'], ['a/*', 'b/*']],
  'virtualMachine.memoryInGB': [2, 4],
  'virtualMachine.numberCPUs': [2, 3],
  'kubernetes.enabled': [true, false],
  'kubernetes.version': ['', '1.29.4', '1.30.2', '1.31.2'],
  'kubernetes.port': [6443, 6444],
  'kubernetes.options.traefik': [true, false],
  'experimental.containerEngine.webAssembly.enabled': [false, true],
  'experimental.kubernetes.options.spinkube': [false, true],
  'experimental.virtualMachine.sshPortForwarder': [true, false],
  'experimental.virtualMachine.diskSize': ['100GiB', '200GiB'],
  'images.namespace': ['default', 'k8s.io'],
  'diagnostics.mutedChecks': [{}, { A: true }, { A: false, B: true }],
  'WSL.integrations': [{}, { Debian: true }],
};

export const settingsArbitrary: fc.Arbitrary<Settings> = fc
  .record(
    Object.fromEntries(Object.entries(VALUES).map(([path, values]) => [path, fc.constantFrom(...(values ?? []))])),
  )
  .map((values) => settingsWith(values));

export const powerArbitrary = fc.constantFrom('started' as const, 'stopped' as const);

/** Any state at all, even impossible ones: two engines, a cluster without one, things running in a machine that is off. */
export const modelArbitrary: fc.Arbitrary<Model> = settingsArbitrary.chain((settings) =>
  fc.record({
    format: fc.constant(1 as const),
    machine: machineArbitrary(machineSpec(settings, DEFAULT_BLOCKS)),
    engines: fc.record({
      moby: engineArbitrary('moby', engineSpec(settings, DEFAULT_BLOCKS)),
      containerd: engineArbitrary('containerd', engineSpec(settings, DEFAULT_BLOCKS)),
    }),
    cluster: clusterArbitrary(clusterSpec(settings, DEFAULT_BLOCKS)),
    log: fc.constant([]),
  }),
);

function machineArbitrary(spec: MachineSpec): fc.Arbitrary<Model['machine']> {
  return fc.constantFrom<Model['machine']>(
    { state: 'absent' },
    { state: 'off' },
    { state: 'on', spec },
    { state: 'on', spec },
    { state: 'broken', reason: 'DiskFull', message: 'the disk is full' },
  );
}

function engineArbitrary(name: EngineName, spec: EngineSpec): fc.Arbitrary<EngineModel> {
  return fc
    .record({
      process: fc.constantFrom<EngineModel['process']>(
        { state: 'stopped' },
        { state: 'running', spec: { ...spec, name } },
        { state: 'hung' },
      ),
      images: fc.nat({ max: 3 }),
      containers: fc.array(fc.boolean(), { maxLength: 3 }),
    })
    .map(({ process, images, containers }) => ({
      process,
      images: Array.from({ length: images }, (_, index) => `image-${index}`),
      containers: containers.map((running, index) => ({
        name: `c${index}`,
        running: running && process.state === 'running',
      })),
      volumes: ['data'],
      used: true,
    }));
}

function clusterArbitrary(spec: ClusterSpec): fc.Arbitrary<ClusterModel> {
  const versions = ['1.29.4', '1.30.2', '1.31.2'];
  return fc
    .record({
      state: fc.constantFrom('absent' as const, 'stopped' as const, 'running' as const, 'hung' as const),
      installedVersion: fc.constantFrom(...versions),
      engine: fc.constantFrom<EngineName>('moby', 'containerd'),
    })
    .map(({ state, installedVersion, engine }): ClusterModel => {
      if (state === 'absent') return { state };
      const workloads = ['default/web'];
      if (state !== 'running') return { state, installedVersion, workloads };
      return { state, installedVersion, workloads, spec: { ...spec, version: installedVersion, engine }, readyAt: 0 };
    });
}

/** What the drivers would report about a model. */
export function seenOf(model: Model): Promise<Observed> {
  return observe(memorySimulation({ model, now: () => 1 }).driver, new AbortController().signal);
}

/** A state that runs with these settings, as if it had just converged. */
export function runningModel(settings: Settings, version = settings.kubernetes.version || '1.33.4'): Model {
  const model = emptyModel();
  const { name } = settings.containerEngine;
  const engine = {
    ...model.engines[name],
    process: { state: 'running' as const, spec: engineSpec(settings, DEFAULT_BLOCKS) },
    used: true,
  };
  return {
    ...model,
    machine: { state: 'on', spec: machineSpec(settings, DEFAULT_BLOCKS) },
    engines: { ...model.engines, [name]: engine },
    cluster: settings.kubernetes.enabled
      ? {
          state: 'running',
          installedVersion: version,
          workloads: ['default/web'],
          spec: { ...clusterSpec(settings, DEFAULT_BLOCKS), version },
          readyAt: 0,
        }
      : { state: 'absent' },
  };
}
