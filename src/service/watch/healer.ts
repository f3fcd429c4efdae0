import { messageOf, RdError } from '../../errors.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import { defined } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import type { Log } from '../../os/limited-log.ts';
import type { Change, PlanRequest } from '../../plan/change.ts';
import { affordablePart } from '../../plan/deferral.ts';
import { afterFailure, afterHeal } from '../../plan/heal-outcome.ts';
import { managerOf } from '../../plan/healing.ts';
import type { Author, StatedSource } from '../../plan/history.ts';
import { changeName } from '../../plan/kept.ts';
import type { Applies } from '../applies.ts';
import type { Planner } from '../planner.ts';
import { type DriftingFile, driftingFiles } from './drifting-files.ts';
import type { Watched } from './report.ts';
import type { Writers } from './writers.ts';

/** Errors of a heal that lost a race. The end of whatever came first triggers another look. */
const LOST_RACES = ['ERR_PLAN_STALE', 'ERR_BACKEND_LOCKED', 'ERR_NOT_READY'];

interface HealerInput {
  planner: Planner;
  files: Pick<FollowingIntegration, 'fileDrift' | 'repair'>;
  applies: Pick<Applies, 'report'>;
  writers: Writers;
  clock: Clock;
  log: Log;
  /** Requests another look. */
  changed(): void;
}

/** Creates the healer, which reverts fields and files of the user, and records the result in the kept profile. */
export function createHealer({ planner, files, applies, writers, clock, log, changed }: HealerInput) {
  /** Port forwards and extensions that a heal has begun to change. */
  let steps: { of: Watched; generation: number; names: string[] } | undefined;

  /** Writes everything that is healed now at once. */
  async function write(one: Watched, whole: PlanRequest, heal: readonly Change[]): Promise<void> {
    const { profile } = one;
    const most = heal.some(({ severity }) => severity === 'restart') ? 'restart' : 'live';
    const { request, plan, changes } = affordablePart(whole, heal, most, planner.plan);
    const names = changes.map(changeName);
    if (names.length === 0) return;
    if (plan.blastRadius.some(({ lost }) => lost)) {
      recordFailure(one, names, 'Setting it back destroys data, which the service never does on its own.');
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
        sourcesOf(one, changes),
      );
      log('info', isApply ? 'deferred changes made' : 'healed', { profile: profile.name, fields: names, generation });
      if (continues) steps = { of: one, generation, names };
      for (const name of names) recordHeal(one, name);
    } catch (error) {
      if (!(error instanceof RdError) || !LOST_RACES.includes(error.code)) {
        const details = error instanceof RdError ? error.details : [];
        recordFailure(one, names, `It could not be set back: ${[messageOf(error), ...details].join('; ')}.`);
      }
    } finally {
      changed();
    }
  }

  async function repair(one: Watched, drifting: readonly DriftingFile[]): Promise<void> {
    const names = drifting.map(({ change }) => changeName(change));
    await files.repair([...new Set(drifting.map(({ part }) => part))]);
    const left = await driftingFiles(files, one.profile.request);
    const still = left.map(({ change }) => changeName(change)).filter((name) => names.includes(name));
    for (const name of names) if (!still.includes(name)) recordHeal(one, name);
    log('info', 'files set back', { profile: one.profile.name, files: names.filter((name) => !still.includes(name)) });
    if (still.length > 0) recordFailure(one, still, 'The file could not be set back; `rdctl status` says why.');
    changed();
  }

  function recordHeal(one: Watched, name: string): void {
    const isRound = !one.profile.pending.includes(name);
    const against = isRound ? managerOf(writers.last(name)?.by) : undefined;
    one.fields[name] = afterHeal(one.fields[name], clock.now(), against);
  }

  function recordFailure(one: Watched, names: readonly string[], message: string): void {
    log('warn', 'healing failed', { profile: one.profile.name, fields: names, reason: message });
    for (const name of names) one.fields[name] = afterFailure(one.fields[name], clock.now(), message);
    changed();
  }

  return {
    /** Heals `changes`. `drifting` has the files among them, and others. */
    async heal(
      one: Watched,
      request: PlanRequest,
      changes: readonly Change[],
      drifting: readonly DriftingFile[],
    ): Promise<void> {
      const ofFiles = drifting.filter(({ change }) => changes.includes(change));
      if (ofFiles.length > 0) await repair(one, ofFiles);
      const ofSettings = changes.filter((change) => !ofFiles.some((file) => file.change === change));
      if (ofSettings.length > 0) await write(one, request, ofSettings);
    },
    /** Records the end of the steps. Port forwards and extensions that could not be changed are tried again later, not at once. */
    endSteps(one: Watched): void {
      const report = applies.report();
      if (steps?.of !== one || !report || report.generation < steps.generation || report.state === 'running') return;
      const { names, generation } = steps;
      steps = undefined;
      if (report.generation !== generation || !report.error) return;
      recordFailure(
        one,
        names,
        `It could not be set back: ${[report.error.message, ...report.error.details].join(' ')}`,
      );
    },
  };
}

/** Returns the lines of the profile that ask for these changes, for the history. */
function sourcesOf({ profile: { places } }: Watched, changes: readonly Change[]): StatedSource[] {
  return changes.flatMap(({ path, key }) => {
    const place = places[changeName({ path, ...defined({ key }) })] ?? places[path] ?? '';
    const [, file, line] = /^(.*):(\d+):\d+$/.exec(place) ?? [];
    if (file === undefined) return [];
    return [{ path, ...defined({ key }), file, line: Number(line) }];
  });
}
