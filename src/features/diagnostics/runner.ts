import { RdError } from '../../errors.ts';
import type { Clock } from '../../os/clock.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { CheckContext, CheckRecord, Diagnostics } from './check.ts';
import { CATEGORIES, type Check, type Finding } from './check.ts';

export interface RunnerOptions {
  checks: readonly Check[];
  context: CheckContext;
  clock: Clock;
  log: (level: 'warn', message: string, values: Record<string, unknown>) => void;
  /** Timeout of one check in milliseconds. */
  limitMs: number;
}

/** Runs checks and caches their findings. */
export interface Runner extends Diagnostics {
  /** Reruns some checks without counting as a complete run. */
  rerun(which: (check: Check) => boolean): Promise<void>;
  /** Cancels the current run and waits for it. */
  close(): Promise<void>;
}

interface Known {
  findings: readonly Finding[];
  /** Number of the run that found them. An older run that ends later does not replace a newer one. */
  run: number;
}

export function createRunner({ checks, context, clock, log, limitMs }: RunnerOptions): Runner {
  const known = new Map<Check, Known>();
  const closing = new AbortController();
  /** Controllers of the checks in progress. They are aborted one by one, because Node 20 leaks every `AbortSignal.any` of a signal that lives on. */
  const ends = new Set<AbortController>();
  let lastUpdate = 0;
  let runs = 0;
  const underWay = new Set<Promise<unknown>>();
  const completeRuns = new SerialQueue();
  let next: Promise<void> | undefined;

  async function look(check: Check, run: number): Promise<void> {
    const over = new AbortController();
    ends.add(over);
    const limit = clock.sleep(limitMs, over.signal).then(() => {
      throw new RdError('ERR_DEADLINE', `the check ${check.id} did not end within ${limitMs / 1000} s`);
    });
    try {
      const findings = await Promise.race([check.run(context, over.signal), limit]);
      const before = known.get(check);
      if (before === undefined || before.run < run) known.set(check, { findings, run });
    } catch (error) {
      if (!closing.signal.aborted) log('warn', 'a diagnostic check could not be run', { check: check.id, error });
    } finally {
      over.abort();
      ends.delete(over);
      limit.catch(() => undefined);
    }
  }

  async function rerun(which: (check: Check) => boolean): Promise<void> {
    runs += 1;
    const run = runs;
    const work = Promise.all(checks.filter((check) => which(check) && applies(check)).map((check) => look(check, run)));
    underWay.add(work);
    await work.finally(() => underWay.delete(work));
  }

  async function complete(): Promise<void> {
    await rerun(() => true);
    if (!closing.signal.aborted) lastUpdate = clock.now();
  }

  function applies(check: Check): boolean {
    return !closing.signal.aborted && check.applies(context);
  }

  function report(filter: { category?: string; id?: string } = {}) {
    const records = checks
      .filter((check) => check.applies(context))
      .flatMap((check) => (known.get(check)?.findings ?? []).map((finding) => recordOf(check, finding)))
      .filter(
        ({ category, id }) =>
          (filter.category === undefined || category === filter.category) &&
          (filter.id === undefined || id === filter.id || id.startsWith(`${filter.id}:`)),
      );
    return { last_update: new Date(lastUpdate).toISOString(), checks: records };
  }

  function recordOf(check: Check, { sub, passed, description, fixes }: Finding): CheckRecord {
    const id = sub === undefined ? check.id : `${check.id}:${sub}`;
    const muted: Readonly<Record<string, boolean>> = context.settings().diagnostics.mutedChecks;
    const isMuted = (name: string) => Object.hasOwn(muted, name) && muted[name] === true;
    return {
      description,
      passed,
      fixes,
      id,
      category: check.category,
      mute: isMuted(id) || isMuted(check.id),
      ...(context.documentation === undefined
        ? {}
        : { documentation: `${context.documentation}#${check.id.toLowerCase()}` }),
    };
  }

  return {
    categories: () => CATEGORIES.filter((category) => checks.some((check) => check.category === category)),
    ids(category) {
      const ids = checks.filter((check) => check.category === category).map(({ id }) => id);
      return ids.length === 0 ? undefined : ids;
    },
    report,
    async runAll() {
      // A caller's recent change is only visible to a run that begins now.
      next ??= completeRuns.run(() => {
        next = undefined;
        return complete();
      });
      await next;
      return report();
    },
    rerun,
    async close() {
      closing.abort();
      for (const over of ends) over.abort();
      await Promise.all([completeRuns.idle(), ...underWay]);
    },
  };
}
