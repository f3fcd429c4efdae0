import type { DesiredDocument } from '../../profiles/document/load.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { runningService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import type { LiveState, Plan } from '../../src/plan/change.ts';
import type { PlannedHow } from '../../src/plan/kept.ts';
import { desiredOf, FILE_FLAG, forwardsOf } from '../arguments/profile-files.ts';
import { DRIVER_FLAG, PLAN_TIMEOUT_FLAG } from '../arguments/shared-flags.ts';
import { usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';
import { showNotices } from '../views/service-activity.ts';
import { OUTPUT_FLAG, type View, viewFor } from '../views/view.ts';
import { takeoversOf } from './plan/managers.ts';
import { type Planned, planFor } from './plan/plan-for.ts';

export const plan = defineCommand({
  name: 'plan',
  summary: 'Show what apply would change, and what it would cost',
  usage: '[-f] FILE...',
  description: `Shows the target, each change with its cost and reason, what would be interrupted or lost, and a summary.
The running service plans from the current state; if a step is in progress, it waits for the step to finish. If no
service is running, this is what the next one will plan: from the stored settings, the policies it will read, and its
driver. What a killed service left running is assumed to run.
\`rdctl apply PLAN\` applies a plan saved with --out-file: exactly that plan, or nothing. A plan that other users can
write is refused, because apply can detect changes to the desktop, but not changes to the plan.
Exit codes: 0 success; with --detailed-exitcode 2 if there are changes; 3 the profile is invalid, the target is not the
intended one, or a change is locked, unsupported by the driver, or would be reverted by a kept profile; 1 a file could not be read.

  rdctl plan -f team.yaml
  rdctl plan -f team.yaml --out-file team.plan`,
  flags: {
    file: FILE_FLAG,
    'out-file': { type: 'string', summary: 'Save the plan for `rdctl apply PLAN`', placeholder: 'PLAN' },
    'detailed-exitcode': { type: 'boolean', summary: 'Exit with 2 if there are changes' },
    ...PLAN_TIMEOUT_FLAG,
    driver: DRIVER_FLAG,
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    checkDriver(flags.driver, io.env);
    const path =
      flags['out-file'] === undefined
        ? undefined
        : (await import('../arguments/files.ts')).outFilePath(flags['out-file'], io);
    const view = viewFor(flags.output, io);
    const desired = await desiredOf([...(flags.file ?? []), ...args], io, view);
    if (path !== undefined && desired.maintenance) {
      throw usage(
        'a plan of a profile with a maintenance window cannot be saved, because a saved plan is applied at once',
        'Apply the profile with --keep, or leave out its `apply` block.',
      );
    }
    const { made, live } = await planOf(desired, invocation, { ...flags, isToSave: path !== undefined });
    if (path !== undefined) await save(path, made, live, desired, io);
    view.plan(made, desired.locate);
    if (made.summary.blocked > 0) return 3;
    return flags['detailed-exitcode'] && made.changes.length > 0 ? 2 : 0;
  },
});

/** Shows the plan of a desired state without saving it, and returns the exit code. */
export async function showPlan(
  desired: Planned,
  caller: Caller,
  view: View,
  flags: { driver?: string; timeout?: number; how?: PlannedHow },
): Promise<number> {
  const { made } = await planOf(desired, caller, flags);
  view.plan(made, desired.locate);
  return made.summary.blocked > 0 ? 3 : 0;
}

async function planOf(
  desired: Planned,
  caller: Caller,
  flags: { driver?: string; timeout?: number; how?: PlannedHow; isToSave?: boolean },
) {
  const { io } = caller;
  const service = await runningService(caller);
  if (service) showNotices(service.status, io);
  const { plan: planned, live } = await planFor(desired, service, io, flags);
  return { made: await withTakeovers(planned, desired, io), live };
}

/** Adds takeovers to the plan of a profile. A rollback takes nothing over; it undoes takeovers. */
async function withTakeovers(plan: Plan, { files, metadata }: Planned, io: Io): Promise<Plan> {
  if (!files || plan.changes.length === 0) return plan;
  const profile = { files, ...(metadata?.name === undefined ? {} : { profile: metadata.name }) };
  return { ...plan, warnings: [...plan.warnings, ...(await takeoversOf(plan, profile, homeOf(io)))] };
}

async function save(
  path: string,
  made: Plan,
  live: LiveState | undefined,
  desired: DesiredDocument,
  io: Io,
): Promise<void> {
  if (!live) {
    throw new RdError('ERR_NOT_RUNNING', 'Saving a plan requires a running service.', {
      advice: 'Start one with `rdctl start`; omit --out-file to see an estimated plan.',
    });
  }
  const [
    { realpath },
    { refuseForeignLink },
    { isLink },
    { savePlan },
    { writeFileAtomic },
    { exposureOf, exposureText },
  ] = await Promise.all([
    import('node:fs/promises'),
    import('../arguments/files.ts'),
    import('../../src/state/linked-file.ts'),
    import('../../src/client/saved-plan.ts'),
    import('../../src/os/atomic-file.ts'),
    import('../../src/state/ownership.ts'),
  ]);
  const document = savePlan(made, desired.request, live, desired.files, new Date(), forwardsOf(desired));
  // A link stays a link, as for every file that a person names.
  const isLinked = await isLink(path);
  await refuseForeignLink(path);
  const file = isLinked ? await realpath(path).catch(() => path) : path;
  await writeFileAtomic(file, `${JSON.stringify(document, null, 2)}\n`);
  const exposure = exposureOf(path);
  if (exposure) io.err(`notice: ${exposureText(exposure)}, so \`rdctl apply\` refuses the plan there\n`);
}
