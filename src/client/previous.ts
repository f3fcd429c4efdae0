import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject, type JsonObject, parseJson } from '../json.ts';
import { readIfThere, removeLeftovers, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import type { PlanRequest, Target } from '../plan/change.ts';
import { isWantedForwards, type WantedForwards } from '../plan/port-forwards.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import type { MachineOptions } from '../settings/machine-options.gen.ts';
import { storedMachineOptions } from '../settings/machine-options.ts';
import type { Places } from '../state/places.ts';
import { isSameTarget, isTarget, targetName } from './saved-plan.ts';

/** The state before an apply, for the rollback. */
interface Previous {
  formatVersion: 1;
  savedAt: string;
  target: Target;
  settings: JsonObject;
  /** Absent for another application. */
  machine?: MachineOptions;
  /** `unmanaged` where the apply did not change it, so that the rollback does not either. */
  power: PlanRequest['state'];
  /** Absent where they cannot be listed. */
  portForwards?: WantedForwards['entries'];
}

/** The rollback request. Without `portForwards` the previous ones are unknown. */
interface Rollback {
  request: PlanRequest;
  portForwards?: WantedForwards;
}

/** One file per target, so that no service gets another one's state. */
const FILE = /^before-apply-[0-9a-f]{16}\.json$/;

/** Records the state before an apply writes (file mode 0600: settings may contain a proxy password). */
export async function recordPrevious(
  where: Places,
  before: Omit<Previous, 'formatVersion' | 'savedAt'>,
  now: Date,
): Promise<void> {
  const previous: Previous = { formatVersion: 1, savedAt: now.toISOString(), ...before };
  const file = join(where.state, fileOf(before.target));
  // Only one apply at a time writes it.
  await removeLeftovers(file);
  await writeFileAtomic(file, `${JSON.stringify(previous, null, 2)}\n`);
}

/**
 * Returns a lookup of a target's state before its last apply. Throws `ERR_NOT_FOUND` when none is recorded; the lookup
 * throws `ERR_WRONG_TARGET` when none is recorded for that target, and `ERR_IO` for an unusable file.
 */
export async function previousState(where: Places): Promise<(target: Target) => Rollback> {
  const kept = await keptFiles(where.state);
  if (kept.size === 0) {
    throw new RdError('ERR_NOT_FOUND', 'There is no previous state: no apply has changed anything here.', {
      advice: 'Apply a profile with `rdctl apply -f FILE`.',
    });
  }
  return (target) => {
    const file = fileOf(target);
    const text = kept.get(file);
    const previous = text === undefined ? undefined : parse(text, join(where.state, file));
    if (!previous || !isSameTarget(previous.target, target)) throw wrongTargetError(previous, target);
    const { settings, machine, power, portForwards: entries } = previous;
    const maps = FIELDS.filter((field) => field.type.startsWith('map<'));
    const request: PlanRequest = {
      settings,
      ...(machine ? { machine } : {}),
      state: power,
      prune: [...maps.map((field) => field.path), ...(machine ? ['machine.mounts'] : [])],
    };
    return { request, ...(entries ? { portForwards: { entries, exclusive: true } } : {}) };
  };
}

function wrongTargetError(previous: Previous | undefined, target: Target): RdError {
  const kept = previous
    ? `The previous state is from ${targetName(previous.target)}`
    : 'The previous state is from another target';
  return new RdError('ERR_WRONG_TARGET', `${kept}, but this is ${targetName(target)}; nothing was changed.`, {
    advice: 'Connect to the target that the last apply changed, or apply a profile.',
  });
}

/** The file name identifies the target without revealing its path. */
function fileOf({ home = '' }: Target): string {
  return `before-apply-${createHash('sha256').update(home).digest('hex').slice(0, 16)}.json`;
}

async function keptFiles(directory: string): Promise<ReadonlyMap<string, string>> {
  const kept = new Map<string, string>();
  for (const name of await namesIn(directory)) {
    const text = FILE.test(name) ? await readIfThere(join(directory, name)) : undefined;
    if (text !== undefined) kept.set(name, text);
  }
  return kept;
}

/** The entries of a directory; none if it is missing. */
async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw ioError('read', directory, error);
  });
}

function parse(text: string, file: string): Previous {
  const value = parseJson(text);
  if (isPrevious(value)) return value;
  throw new RdError('ERR_IO', `${file} does not contain a previous state.`, {
    advice: 'Remove the file, then apply the profile you want.',
  });
}

function isPrevious(value: unknown): value is Previous {
  if (!isObject(value) || value.formatVersion !== 1 || typeof value.savedAt !== 'string') return false;
  const { portForwards: entries, machine } = value;
  if (entries !== undefined && !isWantedForwards({ entries, exclusive: true })) return false;
  if (machine !== undefined && !storedMachineOptions(machine)) return false;
  return (
    isObject(value.settings) &&
    isTarget(value.target) &&
    ['started', 'stopped', 'unmanaged'].some((word) => word === value.power)
  );
}
