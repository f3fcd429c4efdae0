import { randomBytes } from 'node:crypto';
import { applyEvents } from '../events/apply-events.ts';
import type { EventBody } from '../events/event.ts';
import { createEventRing, type EventSource, type RingInput } from '../events/event-ring.ts';
import { historyEvents } from '../events/history-events.ts';
import { type LoopMemory, loopEvents } from '../events/loop-events.ts';
import type { HistoryEntry } from '../plan/history.ts';
import { PRODUCT } from '../product.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { ApplyWork } from '../reconcile/status-document.ts';

/** Limits of the event ring: the events of a busy day, about a MiB. */
const MOST: RingInput['most'] = { events: 1_000, characters: 1024 * 1024 };

/** The events of a service. Any part of it may add one. */
export interface ServiceEvents extends EventSource {
  emit(body: EventBody): void;
  /** Adds the events of the loop from now on. Returns the unsubscribe function. */
  follow(controllers: Pick<Controllers, 'onChange' | 'status'>): () => void;
  /** Adds the notices that are new since the last call. */
  noteNotices(notices: readonly string[]): void;
  /** Adds the progress of an apply since the last call. */
  noteApply(report: ApplyWork | undefined): void;
}

export interface ServiceEventsInput {
  /** The entries of earlier runs of the service, and the last generation that the history has dropped. */
  history: { entries: readonly HistoryEntry[]; dropped: number };
  /** The generation that this run of the service begins with. */
  generation: number;
  /** Milliseconds since 1970. */
  now(): number;
  /** Limits of the event ring, for tests. */
  most?: RingInput['most'];
}

/** Returns the event of the beginning or the end of a run of the service. */
export function serviceEvent(state: 'started' | 'stopping'): EventBody {
  return { type: 'service', service: { state, version: PRODUCT.version, pid: process.pid } };
}

/** Creates the events: those of earlier runs as far as the history has them, then everything that happens. */
export function createServiceEvents({ history, generation, now, most = MOST }: ServiceEventsInput): ServiceEvents {
  const ring = createEventRing({ run: randomBytes(4).toString('hex'), dropped: history.dropped, most });
  const listeners = new Set<() => void>();
  let notices = 0;
  let written = generation;
  let apply: ApplyWork | undefined;
  for (const { body, at } of historyEvents(history.entries)) ring.add(body, at);
  ring.begin(generation);

  function emit(body: EventBody): void {
    if (body.type === 'change') written = body.change.generation;
    // The outcome belongs to a change that could not be written and was therefore not reported.
    if (body.type === 'outcome' && body.outcome.generation > written) return;
    ring.add(body, new Date(now()).toISOString());
    for (const listen of listeners) listen();
  }

  return {
    get last() {
      return ring.last;
    },
    next: ring.next,
    resume: ring.resume,
    onEvent(listen) {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
    emit,
    follow(controllers) {
      let memory: LoopMemory = { status: controllers.status() };
      return controllers.onChange((status) => {
        const happened = loopEvents(memory, status);
        memory = happened.memory;
        for (const body of happened.events) emit(body);
      });
    },
    noteNotices(all) {
      for (const notice of all.slice(notices)) emit({ type: 'notice', notice });
      notices = all.length;
    },
    noteApply(report) {
      const happened = applyEvents(apply, report);
      apply = report;
      for (const body of happened) emit(body);
    },
  };
}
