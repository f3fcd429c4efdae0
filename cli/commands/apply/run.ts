import { applyDesired } from '../../../src/client/apply.ts';
import type { ApplyInput } from '../../../src/client/carry-out.ts';
import { runningService, targetOf } from '../../../src/client/session/find.ts';
import { type ErrorCode, RdError } from '../../../src/errors.ts';
import { systemClock } from '../../../src/os/clock.ts';
import type { PlanRequest, Target } from '../../../src/plan/change.ts';
import { NO_FORWARDS, withForwards } from '../../../src/plan/port-forwards.ts';
import { PRODUCT } from '../../../src/product.ts';
import { lockApply } from '../../../src/state/home-lock.ts';
import { ALLOW_FLAG, allowedBy } from '../../arguments/allow-flag.ts';
import { errorWithPositions } from '../../arguments/profile-files.ts';
import type { FlagTable, Invocation } from '../../command.ts';
import { PLAN_WAIT_MS, patientClient, showNotices } from '../../views/service-activity.ts';
import { withRollbackAdvice, withServiceExit } from './failure.ts';
import { checkKeep, type KeepChoice, keepRequest } from './keep.ts';
import { type ApplyOptions, endIdle, type Found, serviceFor, withdraw } from './service.ts';

const NOT_KEPT: KeepChoice = { keep: false, now: false };

/** Milliseconds that an apply waits by default. */
const APPLY_TIMEOUT_MS = 10 * 60_000;

/** Flags of the commands that carry out a plan: consent, exclusions, and the wait. */
export const RUN_FLAGS = {
  allow: ALLOW_FLAG,
  'allow-reset': { type: 'boolean', summary: 'Consent to all data loss that the plan lists' },
  yes: { type: 'boolean', short: 'y', summary: 'Do not ask; same as --allow-reset' },
  'no-snapshot': { type: 'boolean', summary: 'Make no snapshot before data is destroyed' },
  'skip-locked': { type: 'boolean', summary: 'Skip locked settings, and list them' },
  timeout: { type: 'duration', summary: 'How long to wait (default 10m)' },
  'no-wait': { type: 'boolean', summary: 'Do not wait for the backend' },
  'no-start': { type: 'boolean', summary: 'Fail if no service is running' },
  'on-failure': {
    type: 'string',
    summary: 'If the backend fails because of the change: return to the last state that ran (default), or keep it',
    values: ['return', 'keep'],
  },
} as const satisfies FlagTable;

/** Returns the options that `RUN_FLAGS` set. */
export function runOptions(
  flags: Invocation<typeof RUN_FLAGS>['flags'],
): Pick<ApplyOptions, 'timeoutMs' | 'allowed' | 'snapshot' | 'skipLocked' | 'wait' | 'start' | 'onFailure'> {
  return {
    timeoutMs: flags.timeout ?? APPLY_TIMEOUT_MS,
    allowed: flags['allow-reset'] || flags.yes ? 'all' : allowedBy(flags.allow),
    snapshot: !flags['no-snapshot'],
    skipLocked: flags['skip-locked'] ?? false,
    wait: !flags['no-wait'],
    start: !flags['no-start'],
    onFailure: flags['on-failure'] === 'keep' ? 'keep' : 'return',
  };
}

const FORWARDS_UNKNOWN = 'The previous port forwards were not recorded, so they are left unchanged.';

/** Takes the home's lock, finds or starts the service, applies, and shows the result. */
export async function applyNow(options: ApplyOptions): Promise<void> {
  const { caller, view, where, timeoutMs, wanted, choice = NOT_KEPT } = options;
  const { io } = caller;
  await checkKeep(wanted.keepable, choice, where);
  let begun = systemClock.now();
  const leftMs = () => Math.max(0, timeoutMs - (systemClock.now() - begun));
  const state = await requestedPower(options, leftMs);
  const lock = await lockApply(where.applyLock, {
    timeoutMs,
    onWait: ({ pid, since }) => view.event({ type: 'lock-held', pid, since }),
    signal: io.signal,
  });
  let service: Found | undefined;
  let isRefused = false;
  try {
    service = await serviceFor(options, state, leftMs);
    await applyWith(service, options, {
      leftMs,
      decided: (ms) => {
        begun += ms;
      },
    });
  } catch (error) {
    isRefused = true;
    if (service && !service.isTouched) await withdraw(service, io);
    throw error;
  } finally {
    try {
      if (service?.idle) await endIdle(service, { io, isRefused });
    } finally {
      await lock.release();
    }
  }
}

interface Timing {
  leftMs(): number;
  /** Receives the milliseconds spent at the prompt, which are excluded from the service's time. */
  decided(ms: number): void;
}

async function applyWith(service: Found, options: ApplyOptions, { leftMs, decided }: Timing): Promise<void> {
  const { wanted, caller, view, where, timeoutMs, choice = NOT_KEPT } = options;
  const { io } = caller;
  const keep = keepRequest(wanted.keepable, choice, service.status);
  showNotices(service.status, io);
  const { client } = service;
  await options.onService?.(client);
  const target = targetOf(service.status);
  const { checkTarget, checkFresh } = wanted.saved ? await import('../../../src/client/saved-plan.ts') : {};
  if (wanted.saved) checkTarget?.(wanted.saved, target);
  if (wanted.home !== undefined && wanted.home !== target.home) throw otherHome(wanted.home, target);
  const { request, portForwards } = wanted.asked;
  if (!portForwards) view.warnings([FORWARDS_UNKNOWN]);
  let sent = false;
  let agreedToStop = false;
  /** True while the service is being asked to write: until it answers, nobody knows whether it has. */
  let asks = false;
  const input: ApplyInput = {
    // Leave time for the steps after the plan.
    client: patientClient(client, io, () => Math.min(PLAN_WAIT_MS, leftMs() / 2)),
    status: service.status,
    request: {
      ...withForwards(request, portForwards ?? NO_FORWARDS),
      ...(options.snapshot ? {} : { snapshot: false }),
    },
    async author(changes) {
      asks = true;
      return (await wanted.author?.(changes)) ?? {};
    },
    ...(options.onFailure === 'keep' ? { onFailure: 'keep' as const } : {}),
    ...(keep ? { keep } : {}),
    ...(wanted.isRollback ? { how: 'rollback' as const } : {}),
    skipLocked: options.skipLocked,
    skipUnsupported: options.skipUnsupported || wanted.isRollback === true,
    wait: options.wait,
    ...(service.idle ? { started: 'idle' as const } : service.again ? { started: 'again' as const } : {}),
    timeoutMs,
    leftMs,
    clock: systemClock,
    signal: io.signal,
    exact: wanted.saved !== undefined,
    async consent(plan) {
      const asked = systemClock.now();
      const { consentTo } = await import('../../views/consent.ts');
      const answer = await consentTo(plan, options.allowed, io);
      decided(systemClock.now() - asked);
      return answer;
    },
    async inspect(plan, live) {
      if (wanted.saved) checkFresh?.(wanted.saved, plan, live);
      if (plan.changes.length === 0) return;
      if (wanted.isRollback && !agreedToStop) {
        const { consentToStop } = await import('../../views/consent.ts');
        const asked = systemClock.now();
        await consentToStop(plan, options.allowed, io);
        agreedToStop = true;
        decided(systemClock.now() - asked);
      }
      const { takeoversOf } = await import('../plan/managers.ts');
      if (wanted.profile) view.warnings(await takeoversOf(plan, wanted.profile, where));
      if (!client.previous) return;
      const changesPower = plan.changes.some(({ path }) => path === 'state');
      const power = changesPower ? live.power : ('unmanaged' as const);
      await client.previous.keep(where, { target, settings: live.settings, power }, new Date());
    },
    onEvent(event) {
      if (event.type === 'sent' || event.type === 'step') sent = true;
      if (event.type === 'moved') asks = false;
      view.event(event, wanted.locate);
    },
  };
  const outcome = await applyDesired(input)
    .catch((error: unknown) => {
      service.isTouched = sent || (asks && !isRefusal(error));
      throw error;
    })
    .catch((error: unknown) => withServiceExit(error, service, where, sent))
    .catch((error: unknown) => withRollbackAdvice(errorWithPositions(error, wanted.locate), service, where))
    .finally(() => view.endEvents());
  service.isTouched = true;
  view.applied(outcome);
}

/** Errors after which nothing has been written. */
const REFUSALS: readonly ErrorCode[] = [
  'ERR_SETTING_LOCKED',
  'ERR_SETTING_UNSUPPORTED',
  'ERR_SETTING_KEPT',
  'ERR_SETTINGS_INVALID',
  'ERR_PROFILE_INVALID',
  'ERR_PLAN_STALE',
  'ERR_NO_SPACE',
];

function isRefusal(error: unknown): boolean {
  return error instanceof RdError && REFUSALS.includes(error.code);
}

/** Returns the requested power state. A plan for another target is rejected before a service is started or anything is recorded. */
async function requestedPower(
  { wanted, caller, where }: ApplyOptions,
  leftMs: () => number,
): Promise<PlanRequest['state']> {
  const { state } = wanted.asked.request;
  if (!wanted.saved) return state;
  const [service, { checkTarget }, { readRecordedState }] = await Promise.all([
    runningService(caller, leftMs),
    import('../../../src/client/saved-plan.ts'),
    import('../../../src/client/offline.ts'),
  ]);
  const { driver = 'not chosen yet' } = await readRecordedState(where);
  const idle = { product: PRODUCT.name, home: where.data, driver, simulated: driver === 'simulated' };
  checkTarget(wanted.saved, service ? targetOf(service.status) : idle);
  return state;
}

function otherHome(home: string, target: Target): RdError {
  const now = `${target.product} at ${target.home ?? 'an unknown location'}`;
  return new RdError(
    'ERR_WRONG_TARGET',
    `The earlier state is that of ${home}, but this is ${now}; nothing was changed.`,
    {
      advice: 'Repeat the command.',
    },
  );
}
