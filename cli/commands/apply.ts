import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { DesiredDocument } from '../../profiles/document/load.ts';
import type { EventClient } from '../../src/client/contract.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { runningService, targetOf } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { EVENT_KINDS } from '../../src/events/event.ts';
import { defined, isObject, parseJson } from '../../src/json.ts';
import { NO_FORWARDS } from '../../src/plan/port-forwards.ts';
import { refuseExposed } from '../../src/state/ownership.ts';
import type { Places } from '../../src/state/places.ts';
import { adviceFor, desiredOf, FILE_FLAG, forwardsOf } from '../arguments/profile-files.ts';
import { TARGET_FLAG } from '../arguments/shared-flags.ts';
import { usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';
import { OUTPUT_FLAG, type View, viewFor } from '../views/view.ts';
import { applyNow, RUN_FLAGS, runOptions } from './apply/run.ts';
import type { RequestedState } from './apply/service.ts';

export const apply = defineCommand({
  name: 'apply',
  summary: 'Make the desktop match a profile, and wait until it does',
  usage: '[-f] FILE... | PLAN [-f FILE...] | --previous',
  description: `Makes a plan, sends it to the service, and waits until the desktop has converged. If nothing differs,
nothing is sent. The service completes a plan that it has accepted, even if this command is interrupted. If no service is
running, one is started. PLAN is a file written by \`rdctl plan --out-file\` that no other user can write.
With --keep, the service compares the desktop with the profile from now on (\`rdctl kept\`), until \`rdctl release\`; applying it
again updates what is kept. What restarts then waits for the window in the profile, unless --now is given.
Apply asks before it destroys data; without a terminal, it refuses. --allow consents to one item in advance, --allow-reset to all.
Exit codes: 0 success; 1 failure; 3 refused: invalid profile, setting that is locked, unsupported or set back by a kept profile, wrong target;
4 timed out; 5 consent required; 6 the plan is stale.

  rdctl apply team.yaml
  rdctl apply team.plan`,
  flags: {
    file: FILE_FLAG,
    keep: { type: 'boolean', summary: 'Have the service keep the profile: see differences, and heal them as it says' },
    now: { type: 'boolean', summary: 'Do not wait for the maintenance window of the profile' },
    previous: { type: 'boolean', summary: 'Same as `rdctl rollback`; in another application, undo the last apply' },
    ...RUN_FLAGS,
    watch: { type: 'boolean', short: 'w', summary: 'Afterwards, show what happens until Ctrl-C' },
    'skip-unsupported': { type: 'boolean', summary: 'Skip settings that the driver does not support, and list them' },
    'dry-run': { type: 'boolean', summary: 'Only show the plan, as `rdctl plan` does' },
    driver: { type: 'string', summary: 'Driver to use at the first start of the service', placeholder: 'NAME' },
    target: TARGET_FLAG,
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const view = viewFor(flags.output, io);
    const where = homeOf(io);
    checkDriver(flags.driver, io.env);
    const { files, plans } = await separatePlans(flags.file ?? [], args, io);
    if (flags['dry-run']) return dryRun(invocation, view, { ...flags, file: files, isPlan: plans.length > 0 });
    const wanted: RequestedState = await readRequestedState({
      files,
      plans,
      previous: flags.previous ?? false,
      caller: invocation,
      view,
      where,
    });
    let position: string | undefined;
    await applyNow({
      wanted,
      caller: invocation,
      async onService(client) {
        if (!flags.watch) return;
        if (!client.events) throw (await import('./events/follow.ts')).noEvents();
        if (flags['no-wait']) position = await positionOf(client, io.signal);
      },
      view,
      where,
      ...runOptions(flags),
      skipUnsupported: flags['skip-unsupported'] ?? false,
      choice: { keep: flags.keep ?? false, now: flags.now ?? false },
      ...defined({ driver: flags.driver, target: flags.target }),
    });
    if (!flags.watch) return 0;
    const { follow } = await import('./events/follow.ts');
    const { showMessages } = await import('../views/event-text.ts');
    const show = showMessages(flags.output, io);
    await follow(invocation, { kinds: EVENT_KINDS.filter((kind) => kind !== 'status'), since: position, show });
    // The apply has succeeded, even if the watching was interrupted.
    return 0;
  },
});

/** Shows the plan of a profile. A saved plan has been shown, and a rollback has a flag of its own for it. */
async function dryRun(
  caller: Caller,
  view: View,
  {
    file,
    driver,
    timeout,
    previous,
    isPlan,
  }: { file?: readonly string[]; driver?: string; timeout?: number; previous?: boolean; isPlan: boolean },
): Promise<number> {
  if (previous)
    throw usage('--dry-run takes a profile', 'Show what a rollback would change with: rdctl rollback --plan');
  if (isPlan) throw usage('--dry-run takes a profile; a saved plan says what it changes');
  const { showPlan } = await import('./plan.ts');
  const flags = { ...defined({ driver, timeout }) };
  return showPlan(await desiredOf(file, caller.io, view), caller, view, flags);
}

/** Returns the position in the events before the apply: with --no-wait, its effects are yet to be shown. */
async function positionOf({ events }: EventClient, signal: AbortSignal): Promise<string | undefined> {
  const enough = new AbortController();
  let position: string | undefined;
  await events?.({
    kinds: ['service'],
    onMessage: () => undefined,
    onPosition(id) {
      position = id;
      enough.abort();
    },
    signal: AbortSignal.any([signal, enough.signal]),
  }).catch((error: unknown) => {
    if (!enough.signal.aborted) throw error;
  });
  return position;
}

/** Reasons for refusing an exposed plan: its digests detect drift, but not who wrote it. */
const PLAN_EXPOSED = {
  because: 'so the saved plan may not be the one you reviewed',
  otherwise: 'Save it in a directory that only you can write to, and review it again before applying it',
} as const;

/**
 * Separates profiles from saved plans among the arguments. A file named as YAML, standard input and an example are profiles. Anything else has to be
 * a saved plan, so that whoever can write it cannot make a profile of it.
 */
async function separatePlans(
  named: readonly string[],
  args: readonly string[],
  io: Io,
): Promise<{ files: readonly string[]; plans: readonly string[] }> {
  const { exampleNamed } = await import('../arguments/example-files.ts');
  const isPlan = await Promise.all(
    args.map(async (name) => {
      if (name === '-' || exampleNamed(name, io) !== undefined) return false;
      return !/\.ya?ml$/i.test(name) || isSavedPlan(await readFile(resolve(io.cwd, name), 'utf8').catch(() => ''));
    }),
  );
  return {
    files: [...named, ...args.filter((_, at) => !isPlan[at])],
    plans: args.filter((_, at) => isPlan[at]),
  };
}

function isSavedPlan(text: string): boolean {
  const document = parseJson(text);
  return isObject(document) && document.kind === 'Plan';
}

interface WantedInput {
  files: readonly string[];
  /** Saved plans; at most one. */
  plans: readonly string[];
  previous: boolean;
  caller: Caller;
  view: View;
  where: Places;
}

/** Reads the requested state before contacting anything. Throws `ERR_USAGE` unless exactly one source is given. */
async function readRequestedState({
  files,
  plans,
  previous,
  caller,
  view,
  where,
}: WantedInput): Promise<RequestedState> {
  const { io } = caller;
  const [planFile, extra] = plans;
  if (extra !== undefined) throw new RdError('ERR_USAGE', 'only one saved plan can be applied at a time');
  const asked = [planFile !== undefined, previous, files.length > 0 && planFile === undefined].filter(Boolean).length;
  if (asked !== 1 || (previous && files.length > 0)) {
    throw new RdError(
      'ERR_USAGE',
      asked === 0 ? 'no profile or plan specified' : 'a profile, a saved plan and --previous are mutually exclusive',
      {
        advice: 'Specify a profile with -f FILE, a saved plan file, or --previous.',
      },
    );
  }
  if (previous) return previousState(caller, view, where);
  const profile = files.length > 0 ? await desiredOf(files, io, view) : undefined;
  if (planFile === undefined) {
    if (!profile) throw new RdError('ERR_USAGE', 'no profile or plan specified');
    const { request, author, locate } = profile;
    const keepable = { desired: profile, cwd: io.cwd };
    const asked = { request, portForwards: forwardsOf(profile) };
    return { asked, author, locate, keepable, profile: nameOf(profile) };
  }
  const { readSavedPlan, replayRequest } = await import('../../src/client/saved-plan.ts');
  const path = resolve(io.cwd, planFile);
  const text = await planText(path, planFile, io);
  refuseExposed([path], PLAN_EXPOSED);
  const saved = readSavedPlan(text, planFile);
  const { locate, author } = profile ?? {};
  const portForwards = profile ? forwardsOf(profile) : (saved.saved.portForwards ?? NO_FORWARDS);
  return {
    asked: { request: replayRequest(saved, profile?.request, portForwards), portForwards },
    saved,
    ...(locate ? { locate } : {}),
    ...(author ? { author } : {}),
  };
}

/** Returns the state that `rdctl rollback` goes back to; for another application, which has no history, the one kept before the last apply. */
async function previousState(caller: Caller, view: View, where: Places): Promise<RequestedState> {
  const service = await runningService(caller);
  if (service?.client.previous) {
    const target = targetOf(service.status);
    return {
      asked: { request: await service.client.previous.request(where, target) },
      isRollback: true,
      home: target.home,
    };
  }
  const { rollbackState } = await import('./apply/rollback-state.ts');
  return rollbackState(undefined, caller, view);
}

function nameOf({ files, metadata }: DesiredDocument): { files: readonly string[]; profile?: string } {
  return { files, ...defined({ profile: metadata.name }) };
}

async function planText(path: string, name: string, io: Io): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { systemCode } = await import('../../src/os/io-error.ts');
    const code = systemCode(cause);
    const reason =
      code === 'ENOENT' ? 'no such file or directory' : code === 'EISDIR' ? 'is a directory' : String(code);
    throw new RdError('ERR_IO', `${name} could not be read: ${reason}`, {
      cause,
      advice:
        (code === 'ENOENT' ? adviceFor(name, io) : undefined) ??
        'Specify a profile, the name of an example, or a plan saved with `rdctl plan --out-file`.',
    });
  }
}
