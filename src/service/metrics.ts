import type { Metrics } from '../api/context.ts';
import type { Author } from '../plan/history.ts';
import type { Controllers, LoopStatus } from '../reconcile/contract.ts';
import { watchConvergence } from './convergence.ts';
import type { MetricRegistry } from './metric-registry.ts';

/** How many records wait until the library is loaded for them: a service that nobody scrapes stays without it for its first minutes. */
const MOST_PENDING = 1_000;

/** What is read when metrics are scraped. */
export interface MetricSources {
  status(): LoopStatus;
  /** Open event streams. */
  streams(): number;
  version: string;
  driver: string;
  /** RFC 3339. */
  startedAt: string;
}

/** What the service counts and measures, for `GET /v2/metrics`. */
export interface ServiceMetrics extends Metrics {
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
