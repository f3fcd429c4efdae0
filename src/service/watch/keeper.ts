import type { Keep, Log, Planner } from '../../api/context.ts';
import { RdError } from '../../errors.ts';
import type { Clock } from '../../os/clock.ts';
import { refuseBlocked } from '../../plan/blocks.ts';
import type { Change, Plan, PlanRequest } from '../../plan/change.ts';
import { deferralOf, openChanges, refuseUnattended, withDeferral, withoutDearer } from '../../plan/deferral.ts';
import type { Author, StatedSource } from '../../plan/history.ts';
import { changeName, commonFields, type KeptProfile, partialRequest } from '../../plan/kept.ts';
import type { OnFailure } from '../../plan/return.ts';
import type { ApplyReply } from '../../reconcile/status-document.ts';
import type { MaintenanceWindow } from '../../settings/maintenance-window.ts';
import { equal } from '../../settings/own.ts';
import { refuseTooMuch } from './kept-size.ts';
import { withNeeded } from './replaced.ts';
import type { Watched } from './report.ts';

interface KeeperInput {
  planner: Planner;
  /** Changed in place. */
  watched: Watched[];
  /** Makes it durable. Throws `ERR_IO`. */
  save(): Promise<void>;
  generation(): number;
  /** The oldest version that an automatic return may go back to. */
  oldestReturn(): number;
  clock: Clock;
  zone?: string | undefined;
  log: Log;
}

type Written = Pick<ApplyReply, 'generation' | 'sent' | 'continues'>;

/** Begins and ends the keeping of profiles, and carries out their applies. */
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
        // All of them, until they are written: a service that is killed in between finishes the apply.
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
        ...(old ? { replaced: withNeeded(old, input.oldestReturn()), applying: true } : {}),
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
        const live = withoutDearer(request, candidates, 'live', planner.plan);
        if (live.length === 0) return { generation: generation(), sent: [], continues: false };
        const part = partialRequest(request, live);
        return planner.write(part, planner.plan(part).tag ?? '', by, onFailure, sources);
      }
    },
    /** False where no profile of that name is kept. Throws `ERR_IO`; it is still kept then. */
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

/** Throws `ERR_PROFILE_INVALID` where another kept profile decides the same field. */
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

/** Applying again does not postpone what already waits for its window. */
function stillWaiting(old: Watched | undefined, changes: readonly Change[]): Watched['fields'] {
  const waiting = changes.map(changeName).filter((name) => old?.profile.pending.includes(name));
  return Object.fromEntries(
    waiting.flatMap((name) => {
      const since = old?.fields[name]?.since;
      return since === undefined ? [] : [[name, { since, rounds: {} }]];
    }),
  );
}

/** The same profile, of which nothing is pending, contested or paused. */
function isSettled(old: Watched, { appliedAt: _, generation: __, pending: ___, ...profile }: KeptProfile): boolean {
  const { appliedAt, generation, pending, ...known } = old.profile;
  const fields = Object.values(old.fields);
  return (
    pending.length === 0 &&
    fields.every(({ contested, paused, failed }) => !contested && !paused && !failed) &&
    equal(JSON.parse(JSON.stringify(known)), JSON.parse(JSON.stringify(profile)))
  );
}
