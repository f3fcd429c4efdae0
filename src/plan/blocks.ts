import type { DriverInfo, Support } from '../drivers/driver.ts';
import { type ErrorCode, RdError } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { parseByteSize } from '../settings/canonical.ts';
import { leafAt, pointerTo } from '../settings/leaf-paths.ts';
import { isLocked } from '../settings/locks.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import type { Change, Plan } from './change.ts';
import { type Difference, EXTENSIONS } from './diff.ts';
import { supportOf } from './drift.ts';
import { type ExtensionGate, extensionBlock } from './extension-changes.ts';

/** The locks, driver and extension rules that can block a change. `lockedBy` names the source of the locks. */
export interface Gatekeepers {
  locks: JsonObject;
  lockedBy?: string;
  driver: DriverInfo;
  /** Absent where settings are only written, which neither installs nor uninstalls. */
  extensions?: ExtensionGate;
}

/** Returns the reason that a change is blocked, or undefined. Locks come first, because switching drivers would not help. */
export function blockOf(
  difference: Difference,
  { locks, lockedBy, driver, extensions }: Gatekeepers,
): Change['blocked'] {
  const { path, after } = difference;
  if (isLocked(locks, path)) {
    return { by: 'lock', message: lockMessage(path, lockedBy) };
  }
  const support = supportOf(driver, path);
  const reserved = reservedPath(support, difference);
  if (reserved !== undefined) {
    const message = `"${difference.key}" cannot be shared with the ${driver.name} driver: its machine uses ${reserved} itself.`;
    return { by: 'unsupported', message };
  }
  if (!refuses(support, after)) return path === EXTENSIONS ? blockOfExtension(difference, extensions) : undefined;
  return {
    by: 'unsupported',
    message: `"${path}" cannot be changed with the ${driver.name} driver: ${support.reason ?? 'it refuses this value'}.`,
  };
}

/** Returns the machine path that an entry of a directory map would conflict with, or undefined. Removing or excluding an entry is always possible. */
function reservedPath(support: Support, { key, after }: Difference): string | undefined {
  if (support.level !== 'enforced' || key === undefined || after === undefined || after === 'none') return undefined;
  return support.reserved?.find((place) => isWithin(key, place) || isWithin(place, key));
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(place === '/' ? '/' : `${place}/`);
}

function blockOfExtension(difference: Difference, gate: ExtensionGate | undefined): Change['blocked'] {
  if (gate) return extensionBlock(difference, gate);
  const message = `"${difference.path}" is changed by installing and uninstalling extensions, not by writing settings.`;
  return { by: 'unsupported', message };
}

/** A lock can only be lifted where it was set. */
function lockMessage(path: string, lockedBy: string | undefined): string {
  return `"${path}" is locked by ${lockedBy ?? 'a deployment profile'}; ask your administrator.`;
}

/** True for a value that a driver does not support, although it may support others of the setting. */
function refuses(support: Support, value: JsonValue | undefined): boolean {
  if (support.level === 'enforced') {
    const { except = [], most = Number.POSITIVE_INFINITY } = support;
    const amount = typeof value === 'string' ? parseByteSize(value) : value;
    return except.some((excepted) => excepted === value) || (typeof amount === 'number' && amount > most);
  }
  return support.level === 'unsupported' && !support.accepts?.some((accepted) => accepted === value);
}

const BLOCKED_CODES: Readonly<Record<NonNullable<Change['blocked']>['by'], ErrorCode>> = {
  lock: 'ERR_SETTING_LOCKED',
  unsupported: 'ERR_SETTING_UNSUPPORTED',
  kept: 'ERR_SETTING_KEPT',
};

/** Throws one of `BLOCKED_CODES` with a line per blocked change, if any. */
export function refuseBlocked(plan: Plan): void {
  const blocked = plan.changes.filter((change) => change.blocked);
  const by = blocked[0]?.blocked?.by;
  if (!by) return;
  const what = blocked.length === 1 ? 'A change' : `${blocked.length} changes`;
  throw new RdError(BLOCKED_CODES[by], `${what} cannot be made, so nothing was changed.`, {
    details: blocked.map(blockedLine),
    findings: blocked.map((change) => ({ pointer: pointerOfChange(change), message: blockedLine(change) })),
    advice: [...new Set(blocked.map((change) => adviceFor(change, plan)))].join(' '),
  });
}

/** The advice depends on the blocker; for an extension, another driver rarely helps. */
function adviceFor({ blocked }: Change, { target }: Plan): string {
  if (blocked?.advice !== undefined) return blocked.advice;
  if (blocked?.by === 'lock') {
    return 'Remove locked settings from the profile, or add --skip-locked to apply the rest.';
  }
  const other = target.settingsVersion === undefined ? 'use a driver that supports it' : 'update the application';
  return `Remove unsupported settings from the profile, add --skip-unsupported to apply the rest, or ${other}.`;
}

function pointerOfChange({ path, key }: Change): string {
  return pointerTo([...path.split('.'), ...(key === undefined ? [] : [key])]);
}

/** Messages about settings already contain the path. */
function blockedLine({ path, key, blocked }: Change): string {
  const message = blocked?.message ?? '';
  return message.includes(path) ? message : `${key === undefined ? path : `${path}[${key}]`}: ${message}`;
}

/** Settings that protect: requesting one that the driver does not enforce must fail, because silence would imply safety. */
const PROTECTING: readonly SettingPath[] = [
  'containerEngine.allowedImages.enabled',
  'application.extensions.allowed.enabled',
];

/** A requested protection that this driver does not enforce. */
export interface Unprotected {
  path: SettingPath;
  reason: string;
}

/** Lists the requested protections that the driver cannot enforce. If there are any, the backend must not start. */
export function unprotected(settings: Settings, driver: DriverInfo): Unprotected[] {
  return PROTECTING.flatMap((path) => {
    const support = driver.support[path];
    return support.level === 'unsupported' && leafAt(settings, path) === true ? [{ path, reason: support.reason }] : [];
  });
}
