import { createHostIntegration, type IntegrationInput } from '../../src/features/host-integration/integration.ts';
import { systemClock } from '../../src/os/clock.ts';
import type { Observed } from '../../src/plan/backend.ts';
import type { Desired, LoopStatus, Power } from '../../src/reconcile/contract.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { startApi } from './api.ts';

/** The host integration of a service for this user, with the events of the rest of that service. */
export function followedIntegration(home: string, changes: Partial<IntegrationInput> & { power?: Power } = {}) {
  const env = { HOME: home, PATH: '' };
  const lines: { level: string; message: string }[] = [];
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  const input: IntegrationInput = {
    env,
    platform: 'linux',
    self: ['/usr/bin/node', '/opt/rdctl.cjs'],
    places: places(env, 'linux', home),
    settings,
    driver: { simulated: false },
    clock: systemClock,
    log: {
      write: (level, message) => lines.push({ level, message }),
      setLevel: () => undefined,
      close: async () => undefined,
    },
    ...changes,
  };
  const made = createHostIntegration(input);
  const status = { ...startApi().ports.controllers.status(), power: changes.power ?? 'started' };
  let latest: LoopStatus = status;
  let listener: (status: LoopStatus) => void = () => undefined;
  const tell = (next: LoopStatus) => {
    latest = next;
    listener(next);
  };
  made.follow({
    status: () => latest,
    onChange(given) {
      listener = given;
      return () => {
        listener = () => undefined;
      };
    },
  });
  return {
    ...made,
    lines,
    settings,
    sees: (observed: Observed, power: Power) => tell({ ...status, ...observed, power }),
    mobyRuns: (endpoint: string) => tell({ ...status, engines: { ...status.engines, moby: moby(endpoint) } }),
    /** The loop has converged with moby for this generation. */
    converges: (generation: number, endpoint: string) =>
      tell({
        ...status,
        ...{ generation, observedGeneration: generation, converged: true },
        engines: { ...status.engines, moby: moby(endpoint) },
      }),
    /** The loop has not converged for this generation. */
    works: (generation: number) =>
      tell({ ...status, generation, observedGeneration: generation - 1, converged: false }),
    mobyStops: (power: Power) => tell({ ...status, power }),
    clusterRuns: (kubeconfig: string | undefined, ready = true) => {
      const given = { version: '1.33.6', port: 6443, engine: 'moby' } as const;
      const spec = { ...given, traefik: true, flannel: true, spinkube: false, localhostOnly: false };
      tell({
        ...status,
        cluster: {
          state: 'running',
          installedVersion: '1.33.6',
          spec,
          ready,
          ...(kubeconfig === undefined ? {} : { kubeconfig }),
        },
      });
    },
    clusterStops: () => tell({ ...status, cluster: { state: 'stopped', installedVersion: '1.33.6' } }),
    change: (change: (next: Desired['settings']) => void) => {
      const next = structuredClone(settings);
      change(next);
      made.settingsChanged({ settings: next, ...DEFAULT_BLOCKS, power: 'started', generation: 2 });
    },
  };
}

function moby(endpoint: string): LoopStatus['engines']['moby'] {
  const allowedImages = { enabled: false, patterns: [] };
  const spec = { name: 'moby', storageDriver: 'auto', webAssembly: false, allowedImages } as const;
  return { state: 'running', spec, endpoint, version: '1', workload: {} };
}
