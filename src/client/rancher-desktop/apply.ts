import { RdError } from '../../errors.ts';
import type { Deed } from '../../plan/deed.ts';
import { type ExtensionStep, extensionFailure } from '../../plan/extension-changes.ts';
import { type ForwardSteps, forwardName, throwForwardFailure } from '../../plan/port-forwards.ts';
import type { ApplyStep } from '../../reconcile/status-document.ts';
import { type ApplyInput, type Carried, type MadePlan, settle } from '../carry-out.ts';
import type { LifecycleClient, PlanClient, Server, SettingsClient, WriteReply } from '../contract.ts';
import { type ExtensionReply, installExtension, uninstallExtension } from '../extensions.ts';

/** Milliseconds between attempts while the application is not ready for extensions. */
const PAUSE = 250;

/** The client that carries out the steps. */
type StepClient = Server &
  Pick<SettingsClient, 'putSettings'> &
  Pick<LifecycleClient, 'status' | 'setBackendState'> &
  Pick<PlanClient, 'addPortForward' | 'removePortForward'>;

/** Carries out the plan step by step. Extensions need a running engine, so a plan with extensions always waits. */
export async function carryOutForeign(client: StepClient, input: ApplyInput, made: MadePlan): Promise<Carried> {
  const { deed } = made;
  if (!deed) throw new Error('a plan for another application comes with its deed');
  const begun = input.clock.now();
  const leftMs = input.leftMs ?? (() => input.timeoutMs - (input.clock.now() - begun));
  const sent = await writeForeign(client, input, made, deed);
  if (sent.moved) return 'moved';
  let writes = sent.count;
  const { extensions, forwards } = deed.steps;
  const { onEvent, signal } = input;
  let status = await client.status();
  // Converged settings but an abandoned attempt: its cause may be gone, so it is retried once.
  if (writes === 0 && status.backendState === 'ERROR' && status.power === 'started') {
    onEvent({ type: 'retrying' });
    await client.setBackendState('STARTED', { signal });
    writes += 1;
    status = await client.status();
  }
  const waiting = { ...input, wait: input.wait || extensions.length > 0, leftMs };
  const settled = () => settle(waiting, { generation: status.generation, request: made.request, found: status });
  status = await settled();
  await sendForeignForwards(client, input, forwards);
  // Last, so that a failure here leaves everything else applied.
  if (extensions.length > 0) {
    writes += await changeForeignExtensions(client, input, extensions, leftMs);
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
 * Applies a plan to another application, which has no apply of its own: one `PUT /v1/settings` with the differences, and the power state if it
 * differs. Writing settings may start its backend, so a stop comes last. Returns `moved` when the settings no longer match the plan.
 */
async function writeForeign(
  client: StepClient,
  { signal, onEvent }: ApplyInput,
  { plan, request, live }: MadePlan,
  { patch }: Deed,
): Promise<Writes> {
  let count = 0;
  const sent = (what: 'settings' | 'power', { ignoredKeys }: WriteReply) => {
    count += 1;
    onEvent({ type: 'sent', what, ignoredKeys });
  };
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
async function changeForeignExtensions(
  server: Server,
  input: ApplyInput,
  steps: readonly ExtensionStep[],
  leftMs: () => number,
): Promise<number> {
  const failures: string[] = [];
  for (const step of steps) {
    input.onEvent({ type: 'step', step: { what: step.what, name: step.id } });
    const reply = await waitUntilReady(server, input, step, leftMs);
    if (reply.status < 200 || reply.status > 299) failures.push(`${step.what} ${step.id}: ${lineOf(reply)}`);
  }
  if (failures.length > 0) throw extensionFailure(failures);
  return steps.length;
}

/** Waits until the application is ready: it notices a started engine with a delay. */
async function waitUntilReady(
  server: Server,
  { signal, clock }: ApplyInput,
  { what, id }: ExtensionStep,
  leftMs: () => number,
): Promise<ExtensionReply> {
  const call = what === 'install' ? installExtension : uninstallExtension;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while extensions were changed.');
    const reply = await call(server, id, { signal, timeoutMs: Math.max(1, leftMs()) });
    if (reply.status !== 503 || leftMs() <= PAUSE) return reply;
    await clock.sleep(PAUSE, signal);
  }
}

function lineOf({ status, text, reason }: ExtensionReply): string {
  const line = text.trim().split('\n', 1).join('') || `status ${status}`;
  return reason === undefined ? line : `${line} (${reason})`;
}

/** Sends all forwards of a request, because existing ones cannot be listed. Throws a refusal, naming the forward. */
async function sendForeignForwards(
  client: StepClient,
  { signal, onEvent }: ApplyInput,
  steps: ForwardSteps,
): Promise<void> {
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
