import type { DesiredDocument } from '../../profiles/document/load.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { desiredOf, forwardsOf } from '../arguments/profile-files.ts';
import { usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';
import { OUTPUT_FLAG, type View, viewFor } from '../views/view.ts';
import { applyNow, RUN_FLAGS, runOptions } from './apply/run.ts';
import type { Planned } from './plan/plan-for.ts';
import { showPlan } from './plan.ts';

export const up = defineCommand({
  name: 'up',
  summary: 'Start the desktop, with a profile or as it is',
  usage: '[PROFILE]',
  description: `Starts the service and the backend, and waits until they run. With a profile, applies it, as \`rdctl apply -f PROFILE\`
does; without one, no setting changes. Examples are found by their name, such as moby or examples/moby.yaml.
Without --or-simulate, a real engine runs or the command fails.
Exit codes: as those of \`rdctl apply\`.

  rdctl up
  rdctl up team.yaml`,
  flags: {
    ...RUN_FLAGS,
    'skip-unsupported': { type: 'boolean', summary: 'Skip settings that the driver does not support, and list them' },
    'dry-run': { type: 'boolean', summary: 'Only show the plan' },
    driver: { type: 'string', summary: 'Driver to use at the first start of the service', placeholder: 'NAME' },
    'or-simulate': { type: 'boolean', summary: 'Run a simulation if no engine can run here' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const [file, extra] = args;
    if (extra !== undefined) throw usage('up takes one profile', 'Layer several with `rdctl apply -f FILE -f FILE`.');
    const view = viewFor(flags.output, io);
    checkDriver(flags.driver, io.env);
    if (flags['or-simulate'] && flags.driver !== undefined) {
      throw usage('--driver and --or-simulate are mutually exclusive');
    }
    const profile = file === undefined ? undefined : await profileToStart(file, io, view);
    const { request, ...desired } = profile ?? DEFAULTS;
    const started = { ...request, state: 'started' } as const;
    const driver = flags['or-simulate'] ? await orSimulated(invocation, file) : flags.driver;
    const chosen = driver === undefined ? {} : { driver };
    if (flags['dry-run']) return showPlan({ ...desired, request: started }, invocation, view, { ...flags, ...chosen });
    await applyNow({
      wanted: {
        asked: { request: started, portForwards: forwardsOf(desired) },
        ...(profile ? { author: profile.author, locate: profile.locate } : {}),
      },
      caller: invocation,
      view,
      where: homeOf(io),
      ...runOptions(flags),
      skipUnsupported: flags['skip-unsupported'] ?? false,
      ...chosen,
    });
    return 0;
  },
});

async function orSimulated(caller: Caller, file: string | undefined): Promise<string | undefined> {
  const { realOrSimulated } = await import('./up/simulation.ts');
  return realOrSimulated(caller, file);
}

/** The request without a profile: the stored settings, started. */
const DEFAULTS: Planned = {
  request: { settings: { version: SCHEMA_VERSION }, state: 'started', prune: [], wishes: [] },
  portForwards: [],
  prunePortForwards: false,
};

async function profileToStart(file: string, io: Io, view: View): Promise<DesiredDocument> {
  const profile = await desiredOf([file], io, view);
  if (profile.request.state !== 'stopped') return profile;
  throw new RdError('ERR_USAGE', `${file} says "state: stopped"`, { advice: `Apply it with: rdctl apply -f ${file}` });
}
