import { type ErrorCode, RdError } from '../errors.ts';
import type { Change, Plan } from '../plan/change.ts';
import { pointerTo } from '../settings/leaf-paths.ts';

/** Throws `ERR_SETTING_LOCKED` or `ERR_SETTING_UNSUPPORTED` with a line for each change that cannot be made, if there is any. */
export function refuseBlocked(plan: Plan): void {
  const blocked = plan.changes.filter((change) => change.blocked);
  const first = blocked[0];
  if (!first) return;
  const code: ErrorCode = first.blocked?.by === 'lock' ? 'ERR_SETTING_LOCKED' : 'ERR_SETTING_UNSUPPORTED';
  const what = blocked.length === 1 ? 'A change' : `${blocked.length} changes`;
  throw new RdError(code, `${what} cannot be made, so nothing was changed.`, {
    details: blocked.map(blockedLine),
    findings: blocked.map((change) => ({ pointer: pointerOfChange(change), message: blockedLine(change) })),
    advice: [...new Set(blocked.map((change) => adviceFor(change, plan)))].join(' '),
  });
}

/** What stands in the way decides what helps; most of all another driver does not permit an extension. */
function adviceFor({ blocked }: Change, { target }: Plan): string {
  if (blocked?.advice !== undefined) return blocked.advice;
  if (blocked?.by === 'lock') {
    return 'Take what is locked out of the profile, or add --skip-locked to apply the rest.';
  }
  const other = target.settingsVersion === undefined ? 'use a driver that supports it' : 'update the application';
  return `Take what is not supported out of the profile, add --skip-unsupported to apply the rest, or ${other}.`;
}

function pointerOfChange({ path, key }: Change): string {
  return pointerTo([...path.split('.'), ...(key === undefined ? [] : [key])]);
}

/** Sentences about settings name them already. */
function blockedLine({ path, key, blocked }: Change): string {
  const message = blocked?.message ?? '';
  return message.includes(path) ? message : `${key === undefined ? path : `${path}[${key}]`}: ${message}`;
}
