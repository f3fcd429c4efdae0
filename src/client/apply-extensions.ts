import { RdError } from '../errors.ts';
import type { Change, Plan } from '../plan/change.ts';
import type { Clock } from '../reconcile/clock.ts';
import type { SettingPath } from '../settings/settings.gen.ts';
import type { Client } from './client.ts';
import { type ExtensionReply, installExtension, uninstallExtension } from './extensions.ts';

const EXTENSIONS: SettingPath = 'application.extensions.installed';
/** Milliseconds between two attempts while the service is not ready for extensions. */
const PAUSE = 250;

export interface ExtensionStage {
  client: Pick<Client, 'request' | 'connection'>;
  plan: Plan;
  clock: Clock;
  signal: AbortSignal;
  /** Milliseconds that are left for all of it. */
  leftMs(): number;
  /** Called before each. */
  onBegin(what: 'install' | 'uninstall', id: string): void;
}

/** True when a plan installs or uninstalls something: then it needs a running engine, whether or not anybody waits. */
export function changesExtensions(plan: Plan): boolean {
  return extensionChanges(plan).length > 0;
}

/**
 * Uninstalls and then installs what the plan says. One that fails does not keep the others from being tried.
 * @returns how many were changed.
 * @throws RdError `ERR_EXTENSION_INVALID` with a line for each that failed, `ERR_CANCELLED`, `ERR_DEADLINE`.
 */
export async function applyExtensions(stage: ExtensionStage): Promise<number> {
  const changes = extensionChanges(stage.plan);
  const ordered = [...changes.filter(isRemoval), ...changes.filter((change) => !isRemoval(change))];
  const failures: string[] = [];
  for (const change of ordered) {
    const id = isRemoval(change) ? (change.key ?? '') : `${change.key}:${String(change.after)}`;
    const what = isRemoval(change) ? 'uninstall' : 'install';
    stage.onBegin(what, id);
    const reply = await untilReady(stage, what, id);
    if (reply.status < 200 || reply.status > 299) failures.push(`${what} ${id}: ${lineOf(reply)}`);
  }
  if (failures.length === 0) return ordered.length;
  const count = failures.length === 1 ? 'An extension' : `${failures.length} extensions`;
  throw new RdError('ERR_EXTENSION_INVALID', `${count} could not be brought in line with the profile.`, {
    details: failures,
    advice: 'Everything else has been applied. Correct what is named and apply again.',
  });
}

/** The service hears of an engine a moment after it has come up. */
async function untilReady(stage: ExtensionStage, what: 'install' | 'uninstall', id: string): Promise<ExtensionReply> {
  const { client, signal, clock, leftMs } = stage;
  const call = what === 'install' ? installExtension : uninstallExtension;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while extensions were changed.');
    const reply = await call(client, id, { signal, timeoutMs: Math.max(1, leftMs()) });
    if (reply.status !== 503 || leftMs() <= PAUSE) return reply;
    await clock.sleep(PAUSE, signal);
  }
}

function extensionChanges(plan: Plan): Change[] {
  return plan.changes.filter((change) => change.path === EXTENSIONS && !change.blocked);
}

function isRemoval({ action }: Change): boolean {
  return action === 'delete';
}

function lineOf({ status, text, reason }: ExtensionReply): string {
  const line = text.trim().split('\n', 1).join('') || `status ${status}`;
  return reason === undefined ? line : `${line} (${reason})`;
}
