import type { DriverInfo, Support } from '../drivers/driver.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { parseByteSize } from '../settings/byte-size.ts';
import { isLocked } from '../settings/locks.ts';
import type { Change } from './change.ts';
import { type Difference, EXTENSIONS } from './diff.ts';
import { type ExtensionGate, extensionBlock } from './extension-changes.ts';

/** Who may refuse a change. `lockedBy` names the file or policy that the locks came from. */
export interface Gatekeepers {
  locks: JsonObject;
  lockedBy?: string;
  driver: DriverInfo;
  /** Absent where settings are only written: that neither installs nor uninstalls. */
  extensions?: ExtensionGate;
}

/** Why a change cannot be made; undefined when it can. A lock speaks first, because no other driver would help. */
export function blockOf(
  difference: Difference,
  { locks, lockedBy, driver, extensions }: Gatekeepers,
): Change['blocked'] {
  const { path, after } = difference;
  if (isLocked(locks, path)) {
    return { by: 'lock', message: lockMessage(path, lockedBy) };
  }
  const support = driver.support[path];
  if (!refuses(support, after)) return path === EXTENSIONS ? blockOfExtension(difference, extensions) : undefined;
  return {
    by: 'unsupported',
    message: `"${path}" cannot be changed with the ${driver.name} driver: ${support.reason ?? 'it refuses this value'}.`,
  };
}

function blockOfExtension(difference: Difference, gate: ExtensionGate | undefined): Change['blocked'] {
  if (gate) return extensionBlock(difference, gate);
  const message = `"${difference.path}" is changed by installing and uninstalling extensions, not by writing settings.`;
  return { by: 'unsupported', message };
}

/** What a person can do about a lock is to ask whoever made it. */
export function lockMessage(path: string, lockedBy: string | undefined): string {
  return `"${path}" is locked by ${lockedBy ?? 'a deployment profile'}; ask your administrator.`;
}

/** A value that a driver cannot bring about, though it may do others of the same setting. */
function refuses(support: Support, value: JsonValue | undefined): boolean {
  if (support.level === 'enforced') {
    const { except = [], most = Number.POSITIVE_INFINITY } = support;
    const amount = typeof value === 'string' ? parseByteSize(value) : value;
    return except.some((excepted) => excepted === value) || (typeof amount === 'number' && amount > most);
  }
  return support.level === 'unsupported' && !support.accepts?.some((accepted) => accepted === value);
}
