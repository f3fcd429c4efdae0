import type { SafetySnapshots } from '../features/snapshots/contract.ts';
import type { Clock } from '../os/clock.ts';
import type { BlastItem, Plan, PlanRequest } from '../plan/change.ts';
import type { PlannedHow } from '../plan/kept.ts';
import { lossesOf, NO_SNAPSHOT } from '../plan/losses.ts';

interface SafetySnapshotInput {
  safetySnapshots: Pick<SafetySnapshots, 'impossible' | 'estimate'>;
  /** Origin of the request. `set` goes on without a snapshot if there is no room; other writes are refused. */
  how: PlannedHow;
  clock: Clock;
  /** Whether the machine is on. */
  isOn: boolean;
  /** Returns the items that a stop of the backend would interrupt now. */
  stopped(): readonly BlastItem[];
}

/** Milliseconds that a plan waits for the estimated size of the snapshot. */
const LOOK_MS = 1_000;

/** Adds to a plan that destroys data the snapshot that precedes it, or a warning with the reason why there is none. */
export async function withSafetySnapshot(plan: Plan, request: PlanRequest, input: SafetySnapshotInput): Promise<Plan> {
  if (lossesOf(plan).length === 0) return plan;
  const warned = (text: string) => ({ ...plan, warnings: [...plan.warnings, text] });
  const { safetySnapshots } = input;
  if (request.snapshot === false) return warned(`${NO_SNAPSHOT}: what is lost cannot be brought back.`);
  if (safetySnapshots.impossible !== undefined) return warned(`${NO_SNAPSHOT}: ${safetySnapshots.impossible}.`);
  const done = new AbortController();
  const estimate = await Promise.race([
    safetySnapshots.estimate(input.isOn),
    input.clock.sleep(LOOK_MS, done.signal).then(() => undefined),
  ]).finally(() => done.abort());
  const { noSpace } = estimate ?? {};
  if (noSpace && input.how === 'set') return warned(`${NO_SNAPSHOT}: ${noSpace.message}.`);
  const stops = estimate?.isLive ? [] : interruptions(plan, input.stopped());
  return {
    ...(noSpace ? warned(`This plan will be refused: ${noSpace.message}. ${noSpace.advice}`) : plan),
    // Losses stay last.
    blastRadius: [...stops, ...plan.blastRadius],
    snapshot: estimate ? { bytes: estimate.bytes } : {},
  };
}

/** Returns the interruptions of the snapshot alone: containers and pods that the plan itself would leave running. */
function interruptions({ blastRadius }: Plan, stopped: readonly BlastItem[]): BlastItem[] {
  const firstClause = ({ what }: BlastItem) => what.split(/; |:/)[0];
  const known = blastRadius.map(firstClause);
  const hasCluster = known.some((what) => what?.includes('workloads of the cluster'));
  return stopped
    .filter((item) => !item.lost && !known.includes(firstClause(item)))
    .filter(({ what }) => !(hasCluster && what.includes('workloads of the cluster')))
    .map(({ what }) => ({ what: `${what.split('; ')[0]} for the snapshot`, lost: false }));
}
