import type { ApiContext, Log, Planner, Watch } from '../../api/context.ts';
import { messageOf, RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import type { Clock } from '../../os/clock.ts';
import { SerialQueue } from '../../os/serial-queue.ts';
import type { Change, PlanRequest } from '../../plan/change.ts';
import { withoutDearer } from '../../plan/deferral.ts';
import { type Drift, judge, managerOf } from '../../plan/healing.ts';
import { type Author, type HistoryEntry, recordedChanges, type StatedSource } from '../../plan/history.ts';
import { changeName, partialRequest } from '../../plan/kept.ts';
import type { FilesPart } from '../../plan/user-files.ts';
import type { Desired } from '../../reconcile/contract.ts';
import { leafAt } from '../../settings/leaf-paths.ts';
import type { SettingPath } from '../../settings/settings.gen.ts';
import type { Written } from '../../state/desired-store.ts';
import type { KeptRecord } from '../../state/kept-file.ts';
import { createForesight, type Foresight } from './foresight.ts';
import { createKeeper } from './keeper.ts';
import { contestedConditions, keptNotices, keptStatus, type Watched } from './report.ts';
import { createWriters } from './writers.ts';

/** First and longest pause after a heal that failed, in milliseconds. */
const RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 60 * 60_000;
/** While something waits for a moment, it is checked at least this often: timers do not run while a computer sleeps. */
const RECHECK_MS = 60_000;
/** How long a service that an apply has started leaves healing to that apply, in milliseconds. */
const GRACE_MS = 10_000;
/** Something else came first, and its end leads to another look. */
const LOST_RACES = ['ERR_PLAN_STALE', 'ERR_BACKEND_LOCKED', 'ERR_NOT_READY'];

export interface WatchInput {
  planner: Planner;
  records: readonly KeptRecord[];
  /** Makes the records durable. Throws `ERR_IO`. */
  save(records: readonly KeptRecord[]): Promise<void>;
  /** The history so far, oldest first. */
  entries: readonly HistoryEntry[];
  applies: Pick<ApiContext['applies'], 'report'>;
  /** The backend stays off: nothing is watched. */
  idle: boolean;
  /** An apply has started this service, and is about to write. */
  startedForApply: boolean;
  /** The operation on the backend's data, during which nothing is healed. */
  maintenance(): string | undefined;
  /** Version of the desired state. */
  generation(): number;
  clock: Clock;
  /** IANA name of the local time zone. */
  zone: string;
  log: Log;
  /** The files of the user that follow the settings. */
  files: Pick<FollowingIntegration, 'fileDrift' | 'repair' | 'onFilesChanged'>;
  /** Called when the report has changed. */
  onChange(): void;
}

/** What the service reports to the watch. */
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

/** Keeps profiles, sees what differs from them after every change, and heals it as each of them says. */
export function createWatch(input: WatchInput): Watch & WatchFeed {
  const { planner, clock, zone, log } = input;
  const queue = new SerialQueue();
  const closed = new AbortController();
  const watched: Watched[] = input.records.map((record) => ({ ...record, drift: [] }));
  /** Port forwards and extensions that a heal has begun to change. */
  let steps: { of: Watched; generation: number; names: string[] } | undefined;
  let started = false;
  let queued = false;
  let graceUntil = 0;
  let timer: AbortController | undefined;
  let shown = '';
  const unwatch = input.files.onFilesChanged(() => changed());
  const save = () => input.save(watched.map(({ profile, fields }) => ({ profile, fields })));
  const keeper = createKeeper({ ...input, watched, save });
  const writers = createWriters(() => watched.map(({ profile }) => profile));
  for (const { by, generation, at, changes, outcome } of input.entries) {
    if (outcome?.result !== 'not applied') writers.note(changes.map(changeName), { by, generation, at });
  }

  function changed(): void {
    if (!started || queued || watched.length === 0 || closed.signal.aborted) return;
    queued = true;
    queue.run(look).catch((error: unknown) => log('error', 'watching failed', { error }));
  }

  async function look(): Promise<void> {
    queued = false;
    if (closed.signal.aborted || input.maintenance() !== undefined) return;
    const stored = JSON.stringify(watched.map(durable));
    const wakes: number[] = [];
    for (const one of watched) {
      const wakeAt = await lookAt(one);
      if (wakeAt !== undefined) wakes.push(wakeAt);
    }
    if (JSON.stringify(watched.map(durable)) !== stored) {
      await save().catch((error: unknown) => log('warn', 'what is kept was not saved', { error }));
    }
    publish();
    wake(wakes.length === 0 ? undefined : Math.min(...wakes));
  }

  function publish(): void {
    const report = JSON.stringify(watched.map(keptStatus));
    if (report === shown) return;
    shown = report;
    input.onChange();
  }

  /** Compares one profile, and heals. Returns when to look again, in milliseconds. */
  async function lookAt(one: Watched): Promise<number | undefined> {
    try {
      const request = planner.check(one.profile.request);
      const files = await driftingFiles(input.files, request);
      endSteps(one);
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
      const ofFiles = files.filter(({ change }) => heal.includes(change));
      if (ofFiles.length > 0) await repairFiles(one, ofFiles);
      const ofSettings = heal.filter((change) => !ofFiles.some((file) => file.change === change));
      if (ofSettings.length > 0) await healNow(one, request, ofSettings);
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

  /** One write for everything that is healed now. */
  async function healNow(one: Watched, whole: PlanRequest, heal: readonly Change[]): Promise<void> {
    const { profile } = one;
    const most = heal.some(({ severity }) => severity === 'restart') ? 'restart' : 'live';
    const chosen = withoutDearer(whole, heal, most, planner.plan);
    const names = chosen.map(changeName);
    if (names.length === 0) return;
    const request = partialRequest(whole, chosen);
    const plan = planner.plan(request);
    if (plan.blastRadius.some(({ lost }) => lost)) {
      failed(one, names, 'Setting it back destroys data, which the service never does on its own.');
      return;
    }
    const isApply = names.some((name) => profile.pending.includes(name));
    try {
      const by: Author = { how: isApply ? 'apply' : 'heal', profile: profile.name, files: profile.files };
      const { generation, continues } = await planner.write(
        request,
        plan.tag ?? '',
        by,
        'return',
        sourcesOf(one, chosen),
      );
      log('info', isApply ? 'deferred changes made' : 'healed', { profile: profile.name, fields: names, generation });
      if (continues) steps = { of: one, generation, names };
      for (const name of names) healed(one, name);
    } catch (error) {
      if (!(error instanceof RdError) || !LOST_RACES.includes(error.code)) {
        const details = error instanceof RdError ? error.details : [];
        failed(one, names, `It could not be set back: ${[messageOf(error), ...details].join('; ')}.`);
      }
    } finally {
      changed();
    }
  }

  async function repairFiles(one: Watched, files: readonly DriftingFile[]): Promise<void> {
    const names = files.map(({ change }) => changeName(change));
    await input.files.repair([...new Set(files.map(({ part }) => part))]);
    const left = await driftingFiles(input.files, one.profile.request);
    const still = left.map(({ change }) => changeName(change)).filter((name) => names.includes(name));
    for (const name of names) if (!still.includes(name)) healed(one, name);
    log('info', 'files set back', { profile: one.profile.name, files: names.filter((name) => !still.includes(name)) });
    if (still.length > 0) failed(one, still, 'The file could not be set back; `rdctl status` says why.');
    changed();
  }

  function healed(one: Watched, name: string): void {
    const { failed: _, ...field } = one.fields[name] ?? { since: clock.now(), rounds: {} };
    const manager = managerOf(writers.last(name)?.by);
    const isRound = !one.profile.pending.includes(name);
    const rounds = isRound ? { ...field.rounds, [manager]: (field.rounds[manager] ?? 0) + 1 } : field.rounds;
    one.fields[name] = { ...field, rounds };
  }

  function failed(one: Watched, names: readonly string[], message: string): void {
    log('warn', 'healing failed', { profile: one.profile.name, fields: names, reason: message });
    for (const name of names) {
      const field = one.fields[name] ?? { since: clock.now(), rounds: {} };
      const attempts = (field.failed?.attempts ?? 0) + 1;
      const pause = Math.min(RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS);
      one.fields[name] = { ...field, failed: { message, attempts, retryAt: clock.now() + pause } };
    }
    changed();
  }

  /** Port forwards and extensions that could not be changed are tried again later, not at once. */
  function endSteps(one: Watched): void {
    const report = input.applies.report();
    if (steps?.of !== one || !report || report.generation < steps.generation || report.state === 'running') return;
    const { names, generation } = steps;
    steps = undefined;
    if (report.generation !== generation || !report.error) return;
    failed(one, names, `It could not be set back: ${[report.error.message, ...report.error.details].join(' ')}`);
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

interface DriftingFile {
  part: FilesPart;
  change: Change;
}

/** The setting that decides about each part of the user's files. */
const FILE_SETTINGS: Record<FilesPart, SettingPath> = {
  path: 'application.pathManagementStrategy',
  autostart: 'application.autoStart',
  docker: 'containerEngine.name',
  kube: 'kubernetes.enabled',
};

/** Files of the user that no longer follow a setting which the profile mentions. */
async function driftingFiles(files: WatchInput['files'], { settings }: PlanRequest): Promise<DriftingFile[]> {
  const mentioned = (part: FilesPart) => leafAt(settings, FILE_SETTINGS[part]) !== undefined;
  if (!Object.keys(FILE_SETTINGS).some((part) => mentioned(part as FilesPart))) return [];
  const drift = await files.fileDrift();
  return drift
    .filter(({ part }) => mentioned(part))
    .map(({ part, change: { file, action, what } }) => ({
      part,
      change: { path: FILE_SETTINGS[part], key: file, action, severity: 'live', reason: what },
    }));
}

/** The lines of the profile that ask for these changes, for the history. */
function sourcesOf({ profile: { places } }: Watched, changes: readonly Change[]): StatedSource[] {
  return changes.flatMap(({ path, key }) => {
    const place = places[changeName({ path, ...(key === undefined ? {} : { key }) })] ?? places[path] ?? '';
    const [, file, line] = /^(.*):(\d+):\d+$/.exec(place) ?? [];
    if (file === undefined) return [];
    return [{ path, ...(key === undefined ? {} : { key }), file, line: Number(line) }];
  });
}

/** What must survive a restart of the service. Rounds begin again then. */
function durable({ profile, fields }: Watched) {
  const memorable = Object.entries(fields).map(([name, { since, contested, paused }]) => [
    name,
    since,
    contested,
    paused,
  ]);
  return [profile.pending, memorable];
}
