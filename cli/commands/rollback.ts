import { checkDriver } from '../../src/client/session/driver.ts';
import { runningService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { stopText } from '../views/consent.ts';
import { showNotices } from '../views/service-activity.ts';
import { OUTPUT_FLAG, viewFor } from '../views/view.ts';
import { rollbackState } from './apply/rollback-state.ts';
import { applyNow, RUN_FLAGS, runOptions } from './apply/run.ts';
import { planFor } from './plan/plan-for.ts';

export const rollback = defineCommand({
  name: 'rollback',
  summary: 'Go back to an earlier state of settings and power',
  usage: '[GENERATION]',
  description: `Undoes every change after a generation of \`rdctl history\`; without one, the last change that stands, and says which. It is an apply like
any other: planned, shown, and recorded in the history, so it can be undone as well. It asks before it stops what runs; --yes consents. Secrets and data are not brought back: for data, there are snapshots.
Settings that the driver no longer supports are skipped and named.
Exit codes: as those of \`rdctl apply\`; 1 if there is nothing to undo.

  rdctl rollback --plan
  rdctl rollback 12`,
  flags: {
    plan: { type: 'boolean', summary: 'Only show the plan', aliases: ['dry-run'] },
    ...RUN_FLAGS,
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    if (args.length > 1) throw usage('rollback takes one generation');
    checkDriver(undefined, io.env);
    const view = viewFor(flags.output, io);
    const wanted = await rollbackState(args[0], invocation, view);
    if (flags.plan) {
      const service = await runningService(invocation);
      if (service) showNotices(service.status, io);
      const { request, portForwards } = wanted.asked;
      const { plan } = await planFor(
        { request, portForwards: [...portForwards.entries], prunePortForwards: false },
        service,
        io,
        { ...flags, how: 'rollback' },
      );
      const stop = stopText(plan);
      view.plan(stop === undefined ? plan : { ...plan, warnings: [...plan.warnings, `${stop}.`] });
      return plan.summary.blocked > 0 ? 3 : 0;
    }
    await applyNow({
      wanted,
      caller: invocation,
      view,
      where: homeOf(io),
      ...runOptions(flags),
      skipUnsupported: true,
    });
    return 0;
  },
});
