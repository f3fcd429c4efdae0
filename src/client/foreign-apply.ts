import { RdError } from '../errors.ts';
import type { Plan, PlanRequest } from '../plan/change.ts';
import { patchOf } from '../plan/diff.ts';
import { type ExtensionStep, extensionFailure, extensionSteps } from '../plan/extension-changes.ts';
import { blindSteps, forwardName, mentionsForwards, NO_FORWARDS, throwForwardFailure } from '../plan/port-forwards.ts';
import type { ApplyStep } from '../reconcile/status-document.ts';
import { fillDefaults } from '../settings/defaults.ts';
import { type ApplyInput, type Carried, type MadePlan, settle } from './carry-out.ts';
import type { WriteReply } from './client.ts';
import { type ExtensionReply, installExtension, uninstallExtension } from './extensions.ts';
import { ANY_HOST } from './offline.ts';

/** Retry interval while the application is not ready for extensions, in milliseconds. */
const PAUSE = 250;

/** Carries out the plan step by step. Extensions need a running engine, so a plan with extensions always waits. */
export async function carryOutForeign(input: ApplyInput, made: MadePlan): Promise<Carried> {
  const begun = input.clock.now();
  const leftMs = input.leftMs ?? (() => input.timeoutMs - (input.clock.now() - begun));
  const sent = await writeForeign(input, made);
  if (sent.moved) return 'moved';
  let writes = sent.count;
  const extensions = extensionSteps(made.plan).length > 0;
  const { client, onEvent, signal } = input;
  let status = await client.status();
  // Converged settings but an abandoned attempt: its cause may be gone, so retry once.
  if (writes === 0 && status.backendState === 'ERROR' && status.power === 'started') {
    onEvent({ type: 'retrying' });
    await client.setBackendState('STARTED', { signal });
    writes += 1;
    status = await client.status();
  }
  const waiting = { ...input, wait: input.wait || extensions, leftMs };
  const settled = () => settle(waiting, { generation: status.generation, request: made.request, found: status });
  status = await settled();
  await sendForeignForwards(input, made.request);
  // Last, so that a failure here leaves everything else applied.
  if (extensions) {
    writes += await changeForeignExtensions(input, made.plan, leftMs);
    status = await client.status();
    status = await settled();
  }
  return { status, writes };
}

/** The writes sent so far. */
interface Writes {
  count: number;
  moved: boolean;
}

/**
 * Applies a plan to another application, which has no apply of its own: one `PUT /v1/settings` with the differences,
 * and the power state if it differs. Writing settings may start its backend, so a stop comes last. `moved` when the
 * settings no longer match the plan.
 */
async function writeForeign(
  { client, signal, onEvent }: ApplyInput,
  { plan, request, live }: MadePlan,
): Promise<Writes> {
  let count = 0;
  const sent = (what: 'settings' | 'power', { ignoredKeys }: WriteReply) => {
    count += 1;
    onEvent({ type: 'sent', what, ignoredKeys });
  };
  const patch = patchOf(plan, request, fillDefaults(live.settings, ANY_HOST));
  if (patch) {
    try {
      const condition = live.etag === undefined ? {} : { ifMatch: live.etag };
      sent('settings', await client.putSettings(patch, { signal, ...condition }));
    } catch (error) {
      if (error instanceof RdError && error.code === 'ERR_PRECONDITION_FAILED') return { count, moved: true };
      throw error;
    }
  }
  const power = plan.changes.some((change) => change.path === 'state') ? request.state : 'unmanaged';
  if (power !== 'unmanaged') {
    sent('power', await client.setBackendState(power === 'started' ? 'STARTED' : 'STOPPED', { signal }));
  }
  return { count, moved: false };
}

/**
 * Uninstalls and installs extensions as planned; a failure does not stop the others.
 * @returns the number changed.
 * @throws RdError `ERR_EXTENSION_INVALID` with a line per failure, `ERR_CANCELLED`, `ERR_DEADLINE`.
 */
async function changeForeignExtensions(input: ApplyInput, plan: Plan, leftMs: () => number): Promise<number> {
  const steps = extensionSteps(plan);
  const failures: string[] = [];
  for (const step of steps) {
    input.onEvent({ type: 'step', step: { what: step.what, name: step.id } });
    const reply = await waitUntilReady(input, step, leftMs);
    if (reply.status < 200 || reply.status > 299) failures.push(`${step.what} ${step.id}: ${lineOf(reply)}`);
  }
  if (failures.length > 0) throw extensionFailure(failures);
  return steps.length;
}

/** The application notices a started engine with a delay. */
async function waitUntilReady(
  { client, signal, clock }: ApplyInput,
  { what, id }: ExtensionStep,
  leftMs: () => number,
): Promise<ExtensionReply> {
  const call = what === 'install' ? installExtension : uninstallExtension;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while extensions were changed.');
    const reply = await call(client, id, { signal, timeoutMs: Math.max(1, leftMs()) });
    if (reply.status !== 503 || leftMs() <= PAUSE) return reply;
    await clock.sleep(PAUSE, signal);
  }
}

function lineOf({ status, text, reason }: ExtensionReply): string {
  const line = text.trim().split('\n', 1).join('') || `status ${status}`;
  return reason === undefined ? line : `${line} (${reason})`;
}

/** Sends all forwards of a request, because existing ones cannot be listed. Throws the refusal, naming the forward. */
async function sendForeignForwards({ client, signal, onEvent }: ApplyInput, request: PlanRequest): Promise<void> {
  const { portForwards = NO_FORWARDS } = request;
  if (!mentionsForwards(portForwards)) return;
  const steps = blindSteps(portForwards);
  const done = (name: string) =>
    onEvent({ type: 'step', step: { what: 'forward', name } satisfies ApplyStep, again: true });
  for (const key of steps.remove) {
    await client.removePortForward(key, { signal }).catch(throwForwardFailure(forwardName(key)));
    done(`${forwardName(key)} → (removed)`);
  }
  for (const forward of steps.ensure) {
    await client.addPortForward(forward, { signal }).catch(throwForwardFailure(forwardName(forward)));
    done(`${forwardName(forward)} → ${forward.hostPort}`);
  }
}
