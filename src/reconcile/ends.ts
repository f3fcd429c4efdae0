import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/backend.ts';
import type { Step } from './step.ts';

/** A part that ran this long did not end because it cannot run, in milliseconds. */
export const STABLE_MS = 60_000;
/** Ends in a row that are no accident. */
export const MANY_ENDS = 3;
/** The first pause before a part that keeps ending is started once more; it doubles with each end, up to the longest. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;

type Part = Step['part'];

/** Each part takes those after it with it. */
const PARTS: readonly Part[] = ['machine', 'engine', 'cluster'];

/** A part ended that nobody had stopped. */
export interface End {
  part: Part;
  /** How long it had run, as far as known. */
  ms: number;
  /** How often it has ended within `STABLE_MS` of its start, in a row. */
  times: number;
  /** How long to wait before it is started again. */
  pauseMs: number;
  error: RdError;
}

/** Counts parts that end by themselves. */
export interface Ends {
  /** Called with every observation and the step that it leads to. An end is returned once. */
  look(seen: Observed, next: Step | undefined): End | undefined;
  /** A step was carried out: what it stopped has not ended by itself. */
  done(step: Step, before: Observed): void;
  /** What ended before the desired state changed is not counted on. */
  forget(): void;
}

export function createEnds(clock: Clock): Ends {
  const upSince = new Map<Part, number>();
  const counts = new Map<Part, { times: number; first: number }>();

  function ended(part: Part): End {
    const now = clock.now();
    const since = upSince.get(part) ?? now;
    for (const other of PARTS.slice(PARTS.indexOf(part))) upSince.delete(other);
    const before = now - since < STABLE_MS ? counts.get(part) : undefined;
    const count = { times: (before?.times ?? 0) + 1, first: before?.first ?? since };
    counts.set(part, count);
    const { times } = count;
    const ms = now - since;
    const pauseMs = times < MANY_ENDS ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (times - MANY_ENDS));
    return { part, ms, times, pauseMs, error: endedError(part, times, now - count.first) };
  }

  return {
    look(seen, next) {
      const now = clock.now();
      for (const part of PARTS) if (isUp(part, seen) && !upSince.has(part)) upSince.set(part, now);
      for (const part of PARTS) {
        const since = upSince.get(part);
        if (since !== undefined && isUp(part, seen) && now - since >= STABLE_MS) counts.delete(part);
      }
      if (next?.step.do !== 'start' || !upSince.has(next.part) || isUp(next.part, seen)) return undefined;
      return ended(next.part);
    },
    done({ part, step }, before) {
      if (step.do !== 'stop' || !isWell(part, before)) return;
      for (const other of PARTS.slice(PARTS.indexOf(part))) upSince.delete(other);
    },
    forget: () => counts.clear(),
  };
}

function isUp(part: Part, seen: Observed): boolean {
  switch (part) {
    case 'machine':
      return seen.machine.state === 'on';
    case 'engine':
      return Object.values(seen.engines).some(({ state }) => state === 'running');
    case 'cluster':
      return seen.cluster.state === 'running';
  }
}

/** What does not answer is stopped because it has failed. */
function isWell(part: Part, { machine, engines, cluster }: Observed): boolean {
  switch (part) {
    case 'machine':
      return machine.state === 'on' && !machine.halted;
    case 'engine':
      return Object.values(engines).every(({ state }) => state !== 'unresponsive');
    case 'cluster':
      return cluster.state !== 'unresponsive';
  }
}

function endedError(part: Part, times: number, ms: number): RdError {
  const text =
    times === 1
      ? `the ${part} ended by itself.`
      : `the ${part} ended ${times} times within ${Math.max(1, Math.round(ms / 1000))} s, each time soon after its start.`;
  return new RdError('ERR_DRIVER_FAILED', text, {
    advice: `Its log says why: rdctl logs ${part === 'machine' ? 'service' : part}`,
  });
}
