import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import { isObject, parseJson } from '../../json.ts';
import { readIfThere, removeLeftovers, writeFileAtomic } from '../../os/atomic-file.ts';
import type { PlanRequest, Target } from '../../plan/change.ts';
import { FIELDS } from '../../settings/fields.gen.ts';
import type { Places } from '../../state/places.ts';
import type { PreviousState } from '../contract.ts';
import { isSameTarget, isTarget, targetName } from '../saved-plan.ts';

type Before = Parameters<PreviousState['keep']>[1];

interface KeptState extends Before {
  formatVersion: 1;
  savedAt: string;
}

/** Keeps the state before an apply writes (file mode 0600: settings may contain a proxy password). Throws `ERR_IO`. */
export async function keepState(where: Pick<Places, 'state'>, before: Before, now: Date): Promise<void> {
  const kept: KeptState = { formatVersion: 1, savedAt: now.toISOString(), ...before };
  const file = fileOf(where, before.target);
  // Only one apply at a time writes it.
  await removeLeftovers(file);
  await writeFileAtomic(file, `${JSON.stringify(kept, null, 2)}\n`);
}

/**
 * Returns the request that undoes the last apply to a target. Throws `ERR_NOT_FOUND` when none is kept for it, `ERR_WRONG_TARGET` for the state of
 * another release, and `ERR_IO` for an unusable file.
 */
export async function readPreviousState(where: Pick<Places, 'state'>, target: Target): Promise<PlanRequest> {
  const file = fileOf(where, target);
  const text = await readIfThere(file);
  if (text === undefined) {
    throw new RdError(
      'ERR_NOT_FOUND',
      `There is no previous state of ${targetName(target)}: no apply has changed it.`,
      {
        advice: 'Apply a profile with `rdctl apply -f FILE`.',
      },
    );
  }
  const kept = parse(text, file);
  if (!isSameTarget(kept.target, target)) {
    const text = `The previous state is from ${targetName(kept.target)}, but this is ${targetName(target)}; nothing was changed.`;
    throw new RdError('ERR_WRONG_TARGET', text, {
      advice: 'Connect to the target that the last apply changed, or apply a profile.',
    });
  }
  const prune = FIELDS.filter((field) => field.type.startsWith('map<')).map((field) => field.path);
  return { settings: kept.settings, state: kept.power, prune };
}

/** Returns the file of a target. Its name identifies the target without revealing its path. */
function fileOf({ state }: Pick<Places, 'state'>, { home = '' }: Target): string {
  return join(state, `before-apply-${createHash('sha256').update(home).digest('hex').slice(0, 16)}.json`);
}

function parse(text: string, file: string): KeptState {
  const value = parseJson(text);
  if (isKeptState(value)) return value;
  throw new RdError('ERR_IO', `${file} does not contain a previous state.`, {
    advice: 'Remove the file, then apply the profile you want.',
  });
}

function isKeptState(value: unknown): value is KeptState {
  return (
    isObject(value) &&
    value.formatVersion === 1 &&
    typeof value.savedAt === 'string' &&
    isObject(value.settings) &&
    isTarget(value.target) &&
    ['started', 'stopped', 'unmanaged'].some((word) => word === value.power)
  );
}
