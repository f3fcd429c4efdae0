import { RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import type { Clock } from '../../os/clock.ts';
import type { Log } from '../../os/limited-log.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { Plan, PlanRequest } from '../../plan/change.ts';
import { type Drift, judge } from '../../plan/healing.ts';
import { type Author, type HistoryEntry, recordedChanges, type StatedSource } from '../../plan/history.ts';
import { changeName } from '../../plan/kept.ts';
import type { OnFailure } from '../../plan/rollback.ts';
import type { Condition, Desired } from '../../reconcile/contract.ts';
import type { ApplyReply, KeptStatus } from '../../reconcile/status-document.ts';
import type { MaintenanceWindow } from '../../settings/maintenance-window.ts';
import type { Written } from '../../state/desired-store.ts';
import type { KeptRecord } from '../../state/kept-file.ts';
import type { Applies } from '../applies.ts';
import type { Planner } from '../planner.ts';
import { driftingFiles } from './drifting-files.ts';
import { createForesight, type Foresight } from './foresight.ts';
import { createHealer } from './healer.ts';
import { createKeeper, type Keep } from './keeper.ts';
import { follow, recordOf } from './replaced.ts';
import { contestedConditions, keptNotices, keptStatus, type Watched } from './report.ts';
import { createWriters } from './writers.ts';

/** Milliseconds between checks while something waits for a moment: timers do not run while a computer sleeps. */
const RECHECK_MS = 60_000;
/** Milliseconds in which a service that an apply has started leaves healing to that apply. */
const GRACE_MS = 10_000;

export interface WatchInput {
  planner: Planner;
  records: readonly KeptRecord[];
  /** Makes the kept profiles durable. Throws `ERR_IO`. */
  save(records: readonly KeptRecord[]): Promise<void>;
  /** The history so far, oldest first. */
  entries: readonly HistoryEntry[];
  applies: Pick<Applies, 'report'>;
  /** Whether the backend stays off; nothing is watched then. */
  idle: boolean;
  /** Whether an apply has started this service, and is about to write. */
  startedForApply: boolean;
  /** Returns the operation on the backend's data, during which nothing is healed. */
  maintenance(): string | undefined;
  /** Returns the version of the desired state. */
  generation(): number;
  /** Returns the oldest version that an automatic rollback may go back to. */
  oldestRollback(): number;
  clock: Clock;
  /** IANA name of the time zone of maintenance windows; by default the local one. */
  zone?: string | undefined;
  log: Log;
  /** The files of the user that follow the settings. */
  files: Pick<FollowingIntegration, 'fileDrift' | 'repair' | 'onFilesChanged'>;
  /** Called when the report has changed. */
  onChange(): void;
}

/** Kept profiles, and the differences from them. */
export interface Watch {
  status(): KeptStatus[];
  /** Returns the conditions of contested profiles; empty while nothing is contested. */
  conditions(): Condition[];
  /** Returns the notices for a person, as sentences. */
  notices(): string[];
  /** Returns the plan with the changes that its window would defer now. */
  plan(plan: Plan, maintenance: MaintenanceWindow | undefined): Plan;
  /**
   * Keeps a profile in place of an earlier one of its name, and carries out the apply; restarts wait for its window.
   * @throws RdError the errors of `Planner.write`; `ERR_PROFILE_INVALID` if another kept profile manages the same field;
   *   `ERR_CONSENT_NEEDED` if a window would destroy data. Nothing was kept or changed then.
   */
  apply(
    request: PlanRequest,
    tag: string,
    by: Author,
    keep: Keep,
    onFailure: OnFailure,
    sources?: readonly StatedSource[],
  ): Promise<Pick<ApplyReply, 'generation' | 'sent' | 'continues'>>;
  /** Ends the keeping of a profile. Returns false if none of that name is kept. Throws `ERR_IO`; it is still kept then. */
  release(name: string): Promise<boolean>;
}

/** Notifications of the service to the watch. */
export interface WatchFeed {
  /** Begins to watch. Call it after the first observation. */
  start(): void;
  /** Something that a plan depends on may have changed. */
  changed(): void;
  /** The desired state has changed. */
  written(next: Desired, written: Written): void;
  foresee: Foresight;
  close(): Promise<void>;
}

/** Creates the watch. It keeps profiles, compares them after every change, and heals differences as each profile says. */
export function createWatch(input: WatchInput): Watch & WatchFeed {
  const { planner, clock, zone, log } = input;
  const queue = new SerialQueue();
  const closed = new AbortController();
  const watched: Watched[] = input.records.map((record) => ({ ...record, drift: [] }));
  let started = false;
  let queued = false;
  let graceUntil = 0;
  let timer: AbortController | undefined;
  let shown = '';
  let stored = JSON.stringify(watched.map(durable));
  const unwatch = input.files.onFilesChanged(() => changed());
  const save = async () => {
    const saving = JSON.stringify(watched.map(durable));
    await input.save(watched.map(recordOf));
    stored = saving;
  };
  const keeper = createKeeper({ ...input, watched, save });
  const writers = createWriters(() => watched.map(({ profile }) => profile));
  const healer = createHealer({ ...input, writers, changed });
  for (const { by, generation, at, changes, outcome } of input.entries) {
    if (outcome?.result === 'not applied') continue;
    wrote(by, generation);
    writers.note(changes.map(changeName), { by, generation, at });
  }

  function changed(): void {
    if (!started || queued || watched.length === 0 || closed.signal.aborted) return;
    queued = true;
    queue.run(look).catch((error: unknown) => log('error', 'watching failed', { error }));
  }

  async function look(): Promise<void> {
    queued = false;
    if (closed.signal.aborted || input.maintenance() !== undefined) return;
    const wakes: number[] = [];
    for (const one of watched) {
      if (!one.applying && one.profile.generation <= input.oldestRollback()) delete one.replaced;
      const wakeAt = await lookAt(one);
      if (wakeAt !== undefined) wakes.push(wakeAt);
    }
    if (JSON.stringify(watched.map(durable)) !== stored) {
      await save().catch((error: unknown) => log('warn', 'what is kept was not saved', { error }));
    }
    publish();
    wake(wakes.length === 0 ? undefined : Math.min(...wakes));
  }

  /** Runs before the writers are told: for them, a profile that is kept again has been applied now. */
  function wrote(by: Author, generation: number): void {
    for (const profile of follow(watched, by, generation)) {
      log('info', 'an earlier profile is kept again', { profile, generation });
    }
  }

  function publish(): void {
    const report = JSON.stringify(watched.map(keptStatus));
    if (report === shown) return;
    shown = report;
    input.onChange();
  }

  /** Compares one profile, and heals. Returns the milliseconds until the next look. */
  async function lookAt(one: Watched): Promise<number | undefined> {
    try {
      const request = planner.check(one.profile.request);
      const files = await driftingFiles(input.files, request);
      healer.endSteps(one);
      const undoneBy = writers.undoing(one.profile);
      const { drift, heal, memory, wakeAt } = judge({
        profile: one.profile,
        plan: planner.plan(request),
        files: files.map(({ change }) => change),
        memory: new Map(Object.entries(one.fields)),
        writer: writers.last,
        ...(undoneBy ? { undoneBy } : {}),
        now: clock.now(),
        zone,
      });
      delete one.unusable;
      logNew(one, drift);
      one.drift = drift;
      one.fields = Object.fromEntries(memory);
      const differing = new Set(drift.map(changeName));
      one.profile = { ...one.profile, pending: one.profile.pending.filter((name) => differing.has(name)) };
      if (heal.length === 0 || input.applies.report()?.state === 'running') return wakeAt;
      if (clock.now() < graceUntil) return Math.min(wakeAt ?? graceUntil, graceUntil);
      await healer.heal(one, request, heal, files);
      return wakeAt;
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      const reason = [error.message, ...error.details].join(' ');
      if (one.unusable === undefined)
        log('warn', 'a kept profile cannot be compared', { profile: one.profile.name, reason });
      one.unusable = `The kept profile ${one.profile.name} cannot be compared: ${reason}. Correct it and apply it again, or release it.`;
      one.drift = [];
      return undefined;
    }
  }

  function logNew({ profile, drift: known }: Watched, drift: readonly Drift[]): void {
    const states = new Map(known.map((each) => [changeName(each), each.state]));
    for (const each of drift) {
      const { state, before, after, by, until, message } = each;
      const field = changeName(each);
      if (states.get(field) === state) continue;
      const level = state === 'healing' || (state === 'reported' && each.heal === 'report') ? 'info' : 'warn';
      log(level, 'drift', {
        profile: profile.name,
        field,
        state,
        is: before,
        wanted: after,
        by,
        until,
        reason: message,
      });
    }
  }

  function wake(at: number | undefined): void {
    timer?.abort();
    if (at === undefined || closed.signal.aborted) return;
    const mine = new AbortController();
    timer = mine;
    clock.sleep(Math.min(Math.max(at - clock.now(), 1), RECHECK_MS), mine.signal).then(() => {
      if (!mine.signal.aborted) changed();
    });
  }

  return {
    status: () => watched.map(keptStatus),
    conditions: () => contestedConditions(watched, input.generation()),
    notices: () => keptNotices(watched.map(keptStatus), clock.now(), zone),
    plan: (plan, maintenance) => keeper.plan(plan, maintenance),
    apply: (request, tag, by, keep, onFailure, sources) =>
      queue
        .run(() => keeper.apply(request, tag, by, keep, onFailure, sources))
        .finally(() => {
          graceUntil = 0;
          publish();
          changed();
        }),
    release: (name) =>
      queue.run(async () => {
        const released = await keeper.release(name);
        publish();
        return released;
      }),
    start() {
      if (input.idle) return;
      started = true;
      if (input.startedForApply) graceUntil = clock.now() + GRACE_MS;
      changed();
    },
    changed,
    foresee: createForesight({ watched, writers, clock, zone }),
    written(next, { before, by, announced }) {
      const at = new Date(clock.now()).toISOString();
      const changes = [...recordedChanges(before, next), ...announced];
      wrote(by, next.generation);
      writers.note(changes.map(changeName), { by, generation: next.generation, at });
      graceUntil = 0;
      changed();
    },
    async close() {
      closed.abort();
      unwatch();
      timer?.abort();
      await queue.idle();
    },
  };
}

/** Returns the fields that must survive a restart of the service. Rounds begin again then. */
function durable({ profile, fields, replaced, applying }: Watched) {
  const memorable = Object.entries(fields).map(([name, { since, contested, paused }]) => [
    name,
    since,
    contested,
    paused,
  ]);
  return [profile.name, profile.generation, profile.pending, memorable, replaced !== undefined, applying];
}
