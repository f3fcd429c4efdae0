import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RdError } from '../src/errors.ts';
import { NO_FORWARDS } from '../src/plan/port-forwards.ts';
import { refuseExposed } from '../src/storage/ownership.ts';
import type { Places } from '../src/storage/places.ts';
import type { Wanted } from './applying.ts';
import type { Io } from './command.ts';
import { desiredOf, forwardsOf } from './desired.ts';
import type { View } from './views/view.ts';

/** The digests in a plan tell that the world has moved; they do not tell who wrote the plan. */
const PLAN_EXPOSED = {
  because: 'so the saved plan there need not be the one that was looked at',
  otherwise: 'Save it in a directory that is yours alone, and look at it again before you apply it',
} as const;

export interface WantedInput {
  files: readonly string[];
  /** Positional arguments: at most one, a saved plan. */
  args: readonly string[];
  previous: boolean;
  io: Io;
  view: View;
  where: Places;
}

/** Reads what an apply is to carry out, before anything is contacted. Throws `ERR_USAGE` unless exactly one thing was asked for. */
export async function wantedOf({ files, args, previous, io, view, where }: WantedInput): Promise<Wanted> {
  const [planFile, extra] = args;
  if (extra !== undefined) throw new RdError('ERR_USAGE', 'one saved plan can be applied at a time');
  const asked = [planFile !== undefined, previous, files.length > 0 && planFile === undefined].filter(Boolean).length;
  if (asked !== 1 || (previous && files.length > 0)) {
    throw new RdError(
      'ERR_USAGE',
      asked === 0 ? 'nothing to apply was given' : 'a profile, a saved plan and --previous exclude each other',
      {
        advice: 'Give a profile with -f FILE, the file of a saved plan, or --previous.',
      },
    );
  }
  if (previous) {
    const { previousState } = await import('../src/client/previous.ts');
    return { asked: await previousState(where), goesBack: true };
  }
  const profile = files.length > 0 ? await desiredOf(files, io, view) : undefined;
  if (planFile === undefined) {
    if (!profile) throw new RdError('ERR_USAGE', 'nothing to apply was given');
    return { asked: { request: profile.request, portForwards: forwardsOf(profile) }, locate: profile.locate };
  }
  const { readSavedPlan, replayRequest } = await import('../src/client/saved-plan.ts');
  const path = resolve(io.cwd, planFile);
  const text = await planText(path, planFile);
  refuseExposed([path], PLAN_EXPOSED);
  const saved = readSavedPlan(text, planFile);
  const { locate } = profile ?? {};
  const portForwards = profile ? forwardsOf(profile) : (saved.saved.portForwards ?? NO_FORWARDS);
  return {
    asked: { request: replayRequest(saved, profile?.request, portForwards), portForwards },
    saved,
    ...(locate ? { locate } : {}),
  };
}

async function planText(path: string, name: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { systemCode } = await import('../src/storage/io-error.ts');
    const code = systemCode(cause);
    const reason = code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a directory' : String(code);
    throw new RdError('ERR_IO', `${name} could not be read: ${reason}`, {
      cause,
      advice: 'Give a profile with -f FILE; the file of a saved plan stands without -f.',
    });
  }
}
