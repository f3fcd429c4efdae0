import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/backend.ts';
import type { Step } from './step.ts';

/** A part that has run this long is able to run, so that its end is not held against it. In milliseconds. */
export const STABLE_MS = 60_000;
/** Consecutive ends that are no longer an accident. */
export const MANY_ENDS = 3;
/** Shortest and longest pause before a part that keeps ending is started once more, in milliseconds; the pause doubles with each end. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;

type Part = Step['part'];

/** The end of a part ends those after it. */
const PARTS: readonly Part[] = ['machine', 'engine', 'cluster'];

/** The end of a part that nobody had stopped. */
export interface End {
  part: Part;
  /** How long the part had run, in milliseconds, as far as known. */
  ms: number;
  /** Consecutive ends of the part within `STABLE_MS` of its start. */
  times: number;
  /** Pause before the part is started again, in milliseconds. */
  pauseMs: number;
  error: RdError;
}

/** Counts parts that end on their own. */
export interface Ends {
  /** Called with every observation and the step that it leads to. Returns each end once. */
  look(seen: Observed, next: Step | undefined): End | undefined;
  /** Records a completed step: the parts that it stopped have not ended on their own. */
  done(step: Step, before: Observed): void;
  /** Resets the counts: ends before a change of the desired state do not count. */
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

/** True for a part that runs and answers. One that does not answer is stopped because it has failed. */
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
