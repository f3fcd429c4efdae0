import { RdError } from '../../errors.ts';
import type { Clock } from '../../os/clock.ts';
import type { Log } from '../../os/limited-log.ts';
import { refuseBlocked } from '../../plan/blocks.ts';
import type { Change, Plan, PlanRequest } from '../../plan/change.ts';
import { affordablePart, deferralOf, openChanges, refuseUnattended, withDeferral } from '../../plan/deferral.ts';
import type { Author, StatedSource } from '../../plan/history.ts';
import { changeName, commonFields, type KeptProfile } from '../../plan/kept.ts';
import type { OnFailure } from '../../plan/rollback.ts';
import type { ApplyReply } from '../../reconcile/status-document.ts';
import type { MaintenanceWindow } from '../../settings/maintenance-window.ts';
import { equal } from '../../settings/own.ts';
import type { WatchRules } from '../../settings/watch-rules.ts';
import type { Planner } from '../planner.ts';
import { withNeeded } from './replaced.ts';
import type { Watched } from './report.ts';

/** Options for keeping a profile. */
export interface Keep {
  /** `metadata.name` */
  name: string;
  watch: WatchRules;
  maintenance?: MaintenanceWindow;
  /** Where the profile mentions a field, by path: `/home/me/team.yaml:7:5`. */
  places: Record<string, string>;
  /** The complete request to keep, if this apply skips part of it. */
  whole?: PlanRequest;
  /** Whether this apply ignores the maintenance window. */
  now?: boolean;
}

interface KeeperInput {
  planner: Planner;
  /** The kept profiles; changed in place. */
  watched: Watched[];
  /** Makes `watched` durable. Throws `ERR_IO`. */
  save(): Promise<void>;
  generation(): number;
  /** Returns the oldest version that an automatic rollback may go back to. */
  oldestRollback(): number;
  clock: Clock;
  zone?: string | undefined;
  log: Log;
}

type Written = Pick<ApplyReply, 'generation' | 'sent' | 'continues'>;

/** Creates the keeper, which begins and ends the keeping of profiles and carries out their applies. */
export function createKeeper(input: KeeperInput) {
  const { planner, watched, save, generation, clock, zone, log } = input;
  /** Runs `write` with `record` in place of the kept profile of its name; without effect if either fails. */
  async function replacing(record: Watched, write: () => Promise<Written>): Promise<Written> {
    const index = watched.findIndex(({ profile }) => profile.name === record.profile.name);
    const before = watched.splice(index === -1 ? watched.length : index, 1, record);
    try {
      await save();
      return await write();
    } catch (error) {
      watched.splice(watched.indexOf(record), 1, ...before);
      await save().catch((cause: unknown) => log('error', 'what is kept was not saved', { error: cause }));
      throw error;
    }
  }

  return {
    plan: (plan: Plan, maintenance: MaintenanceWindow | undefined) =>
      withDeferral(plan, maintenance, clock.now(), zone),
    async apply(
      body: PlanRequest,
      tag: string,
      by: Author,
      keep: Keep,
      onFailure: OnFailure,
      sources?: readonly StatedSource[],
    ): Promise<Written> {
      const request = planner.check(body);
      const whole = keep.whole ? planner.check(keep.whole) : request;
      refuseShared(keep.name, whole, watched);
      const plan = planner.plan(request);
      if (plan.tag !== tag) {
        throw new RdError('ERR_PLAN_STALE', 'the plan is stale; nothing was changed', {
          advice: 'Plan again and review the changes.',
        });
      }
      refuseBlocked(plan);
      const now = clock.now();
      const deferral = deferralOf(plan, keep.now ? undefined : keep.maintenance, now, zone);
      if (deferral) refuseUnattended(deferral, now, zone);
      const changes = openChanges(plan);
      const profile: KeptProfile = {
        ...{ name: keep.name, request: whole, watch: keep.watch, files: by.files ?? [], places: keep.places },
        ...(keep.maintenance ? { maintenance: keep.maintenance } : {}),
        appliedAt: new Date(now).toISOString(),
        generation: generation(),
        // All changes are pending until they are written, so that the next service finishes the apply of one that is killed in between.
        pending: changes.map(changeName),
      };
      const old = watched.find((one) => one.profile.name === keep.name);
      if (old && changes.length === 0 && isSettled(old, profile))
        return planner.write(request, tag, by, onFailure, sources);
      refuseTooMuch(
        profile,
        watched.map((one) => one.profile),
      );
      const record: Watched = {
        ...{ profile, fields: stillWaiting(old, deferral?.changes ?? []), drift: [] },
        ...(old ? { replaced: withNeeded(old, input.oldestRollback()), applying: true } : {}),
      };
      return replacing(record, async () => {
        const reply = deferral
          ? await writeLive(changes.filter((change) => !deferral.changes.includes(change)))
          : await planner.write(request, tag, by, onFailure, sources);
        record.profile = { ...record.profile, generation: reply.generation };
        delete record.applying;
        log('info', old ? 'kept profile updated' : 'profile kept', {
          profile: keep.name,
          generation: reply.generation,
        });
        return reply;
      });

      async function writeLive(candidates: typeof changes): Promise<Written> {
        const part = affordablePart(request, candidates, 'live', planner.plan);
        if (part.changes.length === 0) return { generation: generation(), sent: [], continues: false };
        return planner.write(part.request, part.plan.tag ?? '', by, onFailure, sources);
      }
    },
    /** Ends the keeping of a profile. Returns false if none of that name is kept. Throws `ERR_IO`; it is still kept then. */
    async release(name: string): Promise<boolean> {
      const index = watched.findIndex(({ profile }) => profile.name === name);
      const [record] = index === -1 ? [] : watched.splice(index, 1);
      if (!record) return false;
      await save().catch((error: unknown) => {
        watched.splice(index, 0, record);
        throw error;
      });
      log('info', 'profile released', { profile: name });
      return true;
    },
  };
}

/** Throws `ERR_PROFILE_INVALID` if another kept profile manages the same field. */
function refuseShared(name: string, request: PlanRequest, watched: readonly Watched[]): void {
  for (const { profile } of watched) {
    const shared = profile.name === name ? [] : commonFields(request, profile.request);
    if (shared.length === 0) continue;
    throw new RdError(
      'ERR_PROFILE_INVALID',
      `${name} cannot be kept beside ${profile.name}, because both manage the same fields; nothing was changed.`,
      {
        details: shared,
        advice: `Leave them out of one of the two profiles, or run \`rdctl release ${profile.name}\`.`,
      },
    );
  }
}

/** Returns the fields that still wait for their window; applying again does not postpone them. */
function stillWaiting(old: Watched | undefined, changes: readonly Change[]): Watched['fields'] {
  const waiting = changes.map(changeName).filter((name) => old?.profile.pending.includes(name));
  return Object.fromEntries(
    waiting.flatMap((name) => {
      const since = old?.fields[name]?.since;
      return since === undefined ? [] : [[name, { since, rounds: {} }]];
    }),
  );
}

/** Whether it is the same profile, with nothing pending, contested or paused. */
function isSettled(old: Watched, { appliedAt: _, generation: __, pending: ___, ...profile }: KeptProfile): boolean {
  const { appliedAt, generation, pending, ...known } = old.profile;
  const fields = Object.values(old.fields);
  return (
    pending.length === 0 &&
    fields.every(({ contested, paused, failed }) => !contested && !paused && !failed) &&
    equal(JSON.parse(JSON.stringify(known)), JSON.parse(JSON.stringify(profile)))
  );
}

/** Limits of kept profiles: their number, and the stored characters of all of them. Every change is compared with each. */
const MOST = { profiles: 32, characters: 4 * 1024 * 1024 };

/** Throws `ERR_PROFILE_INVALID` if the profile would exceed the limits beside the others. */
function refuseTooMuch(profile: KeptProfile, kept: readonly KeptProfile[]): void {
  const others = kept.filter(({ name }) => name !== profile.name);
  if (others.length >= MOST.profiles) {
    throw new RdError(
      'ERR_PROFILE_INVALID',
      `${profile.name} cannot be kept, because ${others.length} profiles are kept already; nothing was changed.`,
      { advice: 'Put several into one profile, or run `rdctl release NAME` for one that is no longer needed.' },
    );
  }
  const characters = [...others, profile].reduce((sum, each) => sum + JSON.stringify(each).length, 0);
  if (characters <= MOST.characters) return;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${profile.name} cannot be kept: with it, the kept profiles would have ${characters} characters, and the most are ${MOST.characters}; nothing was changed.`,
    { advice: 'Shorten its lists, or release another profile.' },
  );
}
