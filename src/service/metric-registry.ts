import { readdirSync } from 'node:fs';
import { cpuUsage, memoryUsage, platform } from 'node:process';
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import type { Author } from '../plan/history.ts';
import type { BackendState, LoopStatus } from '../reconcile/contract.ts';

/** Values that are read when metrics are scraped. */
export interface MetricSources {
  status(): LoopStatus;
  /** Returns the number of open event streams. */
  streams(): number;
  version: string;
  driver: string;
  /** Start time in RFC 3339. */
  startedAt: string;
}

/** Every origin starts at zero, so that its first write shows as an increase. */
const HOWS: Readonly<Record<Author['how'], true>> = {
  start: true,
  policy: true,
  edit: true,
  apply: true,
  rollback: true,
  return: true,
  heal: true,
  set: true,
  api: true,
  power: true,
  restore: true,
  reset: true,
  'factory reset': true,
  service: true,
};
const BACKEND_STATES: Readonly<Record<BackendState, true>> = {
  STOPPED: true,
  STARTING: true,
  STARTED: true,
  STOPPING: true,
  ERROR: true,
  DISABLED: true,
};

/** Buckets in seconds. There are few, because every route has its own. */
const REQUEST_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];
const CONVERGENCE_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** The metrics of one service; several may live in one process. */
export type MetricRegistry = ReturnType<typeof createRegistry>;

/** Creates the registry of all metrics that docs/metrics.md lists. */
export function createRegistry(sources: MetricSources) {
  const registry = new Registry();
  const registers = [registry];
  const { status, streams, version, driver } = sources;

  const info = new Gauge({
    ...{ name: 'rdctl_build_info', help: 'Version of the service and its driver; always 1.', registers },
    labelNames: ['version', 'driver'],
  });
  info.set({ version, driver }, 1);
  gauge('rdctl_generation', 'Version of the desired state.', () => status().generation);
  gauge(
    'rdctl_observed_generation',
    'Last version of the desired state that the service has completed.',
    () => status().observedGeneration,
  );
  gauge('rdctl_converged', '1 while the backend is in the desired state.', () => Number(status().converged));
  new Gauge({
    ...{ name: 'rdctl_backend_state', help: '1 for the current state of the backend.', registers },
    labelNames: ['state'],
    collect() {
      const { backendState } = status();
      for (const state of Object.keys(BACKEND_STATES)) this.set({ state }, Number(state === backendState));
    },
  });
  const generations = new Counter({
    ...{ name: 'rdctl_generations_total', help: 'Writes of the desired state, by what made them.', registers },
    labelNames: ['how'],
  });
  for (const how of Object.keys(HOWS)) generations.inc({ how }, 0);
  counter('rdctl_steps_total', 'Completed steps of machine, engine and cluster.', () => status().counters.steps);
  counter(
    'rdctl_step_failures_total',
    'Failed steps, and failed observations of the backend.',
    () => status().counters.failures,
  );
  counter('rdctl_restarts_total', 'Interruptions of a running backend.', () => status().counters.restarts);
  counter('rdctl_cluster_resets_total', 'Deletions of the data of the cluster.', () => status().counters.resets);
  const drift = new Counter({
    ...{ name: 'rdctl_drift_total', help: 'Repairs of a backend that something else had changed.', registers },
  });
  const convergence = new Histogram({
    ...{ name: 'rdctl_convergence_seconds', help: 'Time until the backend was in the desired state.', registers },
    labelNames: ['cause', 'result'],
    buckets: CONVERGENCE_BUCKETS,
  });
  const requests = new Histogram({
    ...{ name: 'rdctl_http_request_duration_seconds', help: 'Time to answer requests to the API.', registers },
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_BUCKETS,
  });
  gauge('rdctl_event_streams', 'Open event streams.', streams);
  processMetrics({ gauge, counter, startedAt: sources.startedAt });

  function gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(value());
      },
    });
  }

  function counter(name: string, help: string, value: () => number): void {
    new Counter({
      ...{ name, help, registers },
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }

  return { generations, drift, convergence, requests, text: () => registry.metrics() };
}

type Register = (name: string, help: string, value: () => number) => void;

/**
 * Registers the usual process metrics under the names that dashboards know, all read at the scrape. Those of the library are not used: its observers
 * of garbage collection and of the event loop keep running between scrapes.
 */
function processMetrics({
  gauge,
  counter,
  startedAt,
}: Record<'gauge' | 'counter', Register> & { startedAt: string }): void {
  counter('process_cpu_seconds_total', 'Processor time of the service, in seconds.', () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  });
  gauge(
    'process_start_time_seconds',
    'Start of the service, in seconds since 1970.',
    () => Date.parse(startedAt) / 1000,
  );
  gauge('process_resident_memory_bytes', 'Resident memory of the service.', () => memoryUsage.rss());
  gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use.', () => memoryUsage().heapUsed);
  if (platform === 'linux') {
    gauge('process_open_fds', 'Open file descriptors.', () => readdirSync('/proc/self/fd').length - 1);
  }
}
