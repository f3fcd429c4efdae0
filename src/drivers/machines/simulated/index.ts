import { setTimeout as delay } from 'node:timers/promises';
import { RdError } from '../../../errors.ts';
import type { DriverFactory } from '../../driver.ts';
import { simulatedDriver } from './driver.ts';
import { listedFaults } from './faults.ts';
import { SIMULATED_INFO } from './info.ts';
import { simulationOptions } from './options.ts';
import { fileStore } from './store.ts';

/** Default duration of each step in milliseconds. */
const LATENCY: Readonly<Record<string, number>> = {
  'machine start': 300,
  'machine stop': 150,
  'engine start': 200,
  'engine stop': 100,
  'cluster start': 400,
  'cluster stop': 150,
  'cluster reset': 200,
};
const OTHER_LATENCY = 50;

/** The simulated driver: never chosen automatically; its machine is a file and outlives the service. */
export const simulated: DriverFactory = {
  ...SIMULATED_INFO,
  automatic: false,
  async probe(env) {
    try {
      simulationOptions(env);
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      return { usable: false, reason: error.message, fix: error.advice ?? 'Unset the variable.' };
    }
    return { usable: true, detail: 'needs nothing' };
  },
  async open({ directory, env, now }) {
    const { latencyMs, faults, firstWorkload } = simulationOptions(env);
    return simulatedDriver({
      info: SIMULATED_INFO,
      store: fileStore(directory),
      now,
      sleep: (ms, signal) => delay(ms, undefined, { signal }),
      latency: (part, step) => {
        const kind = part === 'machine' || part === 'cluster' ? part : 'engine';
        return latencyMs ?? LATENCY[`${kind} ${step}`] ?? OTHER_LATENCY;
      },
      faults: listedFaults(faults),
      firstWorkload,
      clusterReadyMs: 0,
    });
  },
};
