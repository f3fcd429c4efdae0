import type { Author } from '../plan/history.ts';
import type { Controllers, LoopStatus } from '../reconcile/contract.ts';
import type { MetricRegistry, MetricSources } from './metric-registry.ts';

/** How many records wait until the library is loaded for them: a service that nobody scrapes stays without it for its first minutes. */
const MOST_PENDING = 1_000;

/** What the service counts and measures, for `GET /v2/metrics`. */
export interface ServiceMetrics {
  /** Measures an answered request. `route`: its pattern. */
  request(labels: { method: string; route: string; status: string }, ms: number): void;
  /** All of it in the text format of Prometheus. */
  text(): Promise<string>;
  /** Counts a write of the desired state. */
  wrote(how: Author['how']): void;
  /** Measures convergence from here on. Returns the function that ends it. */
  follow(controllers: Pick<Controllers, 'status' | 'onChange'>): () => void;
}

interface MetricsInput {
  sources(): MetricSources;
  /** Milliseconds that only grow. */
  now(): number;
}

/** The library is loaded at the first scrape, so that no start and no idle service pays for it; until then records wait. */
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

/** What led away from convergence: the start of the service, a write of the desired state, or what others did to the backend. */
type ConvergenceCause = 'start' | 'change' | 'drift';

export type ConvergenceEvent =
  /** The backend had converged, has been changed from outside, and is being repaired. */
  { kind: 'drift' } | { kind: 'ended'; cause: ConvergenceCause; result: 'converged' | 'failed'; ms: number };

/** Reads the loop's reports in order. `now`: milliseconds of a clock that only grows. */
export type ConvergenceWatch = (status: LoopStatus, now: number) => ConvergenceEvent[];

/** @param begun when the service started. */
export function watchConvergence(generation: number, begun: number): ConvergenceWatch {
  let current = generation;
  let underway: { cause: ConvergenceCause; since: number } | undefined = { cause: 'start', since: begun };
  /** This generation has converged, and nothing has been found different since. */
  let calm = false;
  /** Since when an observation is due: only a step tells that something has changed. */
  let doubtful: number | undefined;
  /** Another operation, such as a snapshot, stops and starts the backend. */
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
