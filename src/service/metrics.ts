import type { Author } from '../plan/history.ts';
import type { Controllers, LoopStatus } from '../reconcile/contract.ts';
import type { MetricRegistry, MetricSources } from './metric-registry.ts';

/** Records that wait until the library is loaded, so that a service that nobody scrapes runs its first minutes without it. */
const MOST_PENDING = 1_000;

/** The counters and measurements behind `GET /v2/metrics`. */
export interface ServiceMetrics {
  /** Measures an answered request. `route` is its pattern. */
  request(labels: { method: string; route: string; status: string }, ms: number): void;
  /** Returns all metrics in the text format of Prometheus. */
  text(): Promise<string>;
  /** Counts a write of the desired state. */
  wrote(how: Author['how']): void;
  /** Measures convergence from now on. Returns the function that stops it. */
  follow(controllers: Pick<Controllers, 'status' | 'onChange'>): () => void;
}

interface MetricsInput {
  sources(): MetricSources;
  /** Milliseconds of a monotonic clock. */
  now(): number;
}

/**
 * Creates the metrics. The library is loaded at the first scrape, so that neither a start nor an idle service pays for it; until then records wait.
 */
export function createMetrics({ sources, now }: MetricsInput): ServiceMetrics {
  const begun = now();
  let loaded: MetricRegistry | undefined;
  let loading: Promise<MetricRegistry> | undefined;
  let pending: ((registry: MetricRegistry) => void)[] = [];

  function record(work: (registry: MetricRegistry) => void): void {
    if (loaded) {
      work(loaded);
      return;
    }
    pending.push(work);
    if (pending.length >= MOST_PENDING) load().catch(() => undefined);
  }

  function load(): Promise<MetricRegistry> {
    loading ??= import('./metric-registry.ts').then(
      ({ createRegistry }) => {
        const registry = createRegistry(sources());
        for (const work of pending) work(registry);
        pending = [];
        loaded = registry;
        return registry;
      },
      (error: unknown) => {
        // The file may be missing while the tool is replaced.
        pending = [];
        loading = undefined;
        throw error;
      },
    );
    return loading;
  }

  return {
    wrote: (how) => record((registry) => registry.generations.inc({ how })),
    request: (labels, ms) => record((registry) => registry.requests.observe(labels, ms / 1000)),
    follow(controllers) {
      const watch = watchConvergence(controllers.status().generation, begun);
      const see = (status: LoopStatus) => {
        for (const event of watch(status, now())) {
          if (event.kind === 'drift') record((registry) => registry.drift.inc());
          else {
            const { cause, result, ms } = event;
            record((registry) => registry.convergence.observe({ cause, result }, ms / 1000));
          }
        }
      };
      see(controllers.status());
      return controllers.onChange(see);
    },
    text: async () => (await load()).text(),
  };
}

/** The cause of a divergence: the start of the service, a write of the desired state, or a change of the backend from outside. */
type ConvergenceCause = 'start' | 'change' | 'drift';

export type ConvergenceEvent =
  /** `drift`: the converged backend has been changed from outside, and is being repaired. */
  { kind: 'drift' } | { kind: 'ended'; cause: ConvergenceCause; result: 'converged' | 'failed'; ms: number };

/** Reads the loop's reports in order. `now` is in milliseconds of a monotonic clock. */
export type ConvergenceWatch = (status: LoopStatus, now: number) => ConvergenceEvent[];

/** Creates a watch. @param begun when the service started, in milliseconds of the same clock. */
export function watchConvergence(generation: number, begun: number): ConvergenceWatch {
  let current = generation;
  let underway: { cause: ConvergenceCause; since: number } | undefined = { cause: 'start', since: begun };
  /** Whether this generation has converged and no difference has been found since. */
  let calm = false;
  /** When an observation became due: only a step shows that something has changed. */
  let doubtful: number | undefined;
  /** Whether another operation, such as a snapshot, stops and starts the backend. */
  let held = false;

  function end(result: 'converged' | 'failed', now: number): ConvergenceEvent[] {
    if (!underway) return [];
    const { cause, since } = underway;
    underway = undefined;
    return [{ kind: 'ended', cause, result, ms: now - since }];
  }

  return (status, now) => {
    if (status.generation !== current) {
      current = status.generation;
      underway = { cause: 'change', since: now };
      calm = false;
      held = false;
    }
    if (isHeld(status)) held = true;
    if (status.converged) {
      calm = true;
      held = false;
      doubtful = undefined;
      return end('converged', now);
    }
    if (underway) return status.backendState === 'ERROR' ? end('failed', now) : [];
    if (held || !calm) return [];
    doubtful ??= now;
    if (!status.phases.some(({ outcome }) => outcome === undefined)) return [];
    underway = { cause: 'drift', since: doubtful };
    calm = false;
    doubtful = undefined;
    return [{ kind: 'drift' }];
  };
}

function isHeld({ conditions }: LoopStatus): boolean {
  return conditions.some(
    ({ type, reason }) => type === 'Converged' && ['Held', 'DataNotWhole', 'ServiceStopping'].includes(reason),
  );
}
