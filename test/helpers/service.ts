import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { ServiceClient } from '../../src/client/contract.ts';
import { pollStatus, waitConverged } from '../../src/client/converge.ts';
import { systemClock } from '../../src/os/clock.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { RunningService, ServiceOptions } from '../../src/service/options.ts';
import { runService } from '../../src/service.ts';
import { type Places, places } from '../../src/state/places.ts';
import { temporaryDirectory } from './temp-home.ts';

export interface TestService {
  service: RunningService;
  client: ServiceClient;
  home: string;
  here: Places;
  /** Its environment; a command with the same one finds it. */
  env: Record<string, string>;
  /** Waits until the current desired state (or a given generation) has converged. */
  converged(generation?: number): Promise<StatusDocument>;
}

export type TestServiceOptions = Partial<Omit<ServiceOptions, 'env' | 'policies'>> & {
  /** An existing home, for a second service; by default an empty temporary one. */
  home?: string;
  /** Added to `RDCTL_HOME` and a simulation without delays. */
  env?: Record<string, string>;
  policies?: { defaults?: string; locked?: string };
};

/** Nothing listens there: tests contact no other computer. */
const NOBODY = 'http://127.0.0.1:9/';

/**
 * A service in this process with the simulated driver, on its own port; stopped when the test ends or when the caller does it.
 */
export async function startService(
  options: TestServiceOptions = {},
  atEnd: (stop: () => Promise<void>) => void = onTestFinished,
): Promise<TestService> {
  const { home = temporaryDirectory(), policies, env: extra, ...rest } = options;
  const env = { RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0', RDCTL_CONNECTIVITY_URL: NOBODY, ...extra };
  const nowhere = join(home, 'no-policy');
  const service = await runService({
    platform: 'linux',
    driver: 'simulated',
    power: 'keep',
    port: 0,
    allowHosts: [],
    policies: {
      places: [{ format: 'json', defaults: policies?.defaults ?? nowhere, locked: policies?.locked ?? nowhere }],
    },
    ...rest,
    env,
  });
  atEnd(() => service.stop('the test is over'));
  const client = createClient(service.connection);
  return {
    service,
    client,
    home,
    here: places(env, 'linux', ''),
    env,
    async converged(generation) {
      const { signal } = new AbortController();
      return waitConverged({
        feed: pollStatus({ read: () => client.status(), clock: systemClock, signal }),
        generation: generation ?? (await client.status()).generation,
        timeoutMs: 60_000,
        clock: systemClock,
        signal,
      });
    },
  };
}
