import type { CheckContext } from '../../../src/features/diagnostics/check.ts';
import type { JsonObject } from '../../../src/json.ts';
import { run } from '../../../src/os/run.ts';
import type { LoopStatus } from '../../../src/reconcile/contract.ts';
import { defaultSettings } from '../../../src/settings/defaults.ts';
import { mergeSettings } from '../../../src/settings/merge.ts';

export interface ContextChange extends Partial<Omit<CheckContext, 'settings' | 'status'>> {
  /** Merged over the defaults. */
  settings?: JsonObject;
  status?: Partial<LoopStatus>;
}

/** A context in which everything passes and nothing runs, except for what is overridden. */
export function checkContext({ settings = {}, status = {}, ...change }: ContextChange = {}): CheckContext {
  const all = mergeSettings(defaultSettings({ platform: 'linux', arch: 'x64' }), settings);
  const loop: LoopStatus = {
    power: 'stopped',
    generation: 1,
    observedGeneration: 1,
    converged: true,
    backendState: 'STOPPED',
    conditions: [],
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'absent' },
    phases: [],
    counters: { steps: 0, restarts: 0, resets: 0, failures: 0 },
    ...status,
  };
  return {
    platform: 'linux',
    env: {},
    home: '/nowhere',
    data: '/',
    secretFiles: [],
    contextName: 'rdctl',
    api: { port: 6107, requested: false },
    hasCluster: true,
    integration: { integrationOutcomes: () => [] },
    connectivityUrl: 'http://127.0.0.1:9/',
    settings: () => all,
    status: () => loop,
    kubernetesVersions: () => ['1.30.2', '1.29.4'],
    now: () => Date.UTC(2030, 0, 1),
    run,
    ...change,
  };
}
