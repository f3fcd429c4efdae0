import { RdError } from '../../errors.ts';
import type { KeptProfile } from '../../plan/kept.ts';

/** Kept profiles, and characters of all of them as they are stored. Every change is compared with each. */
const MOST = { profiles: 32, characters: 4 * 1024 * 1024 };

/** Throws `ERR_PROFILE_INVALID` where one more, or a larger one, is too much beside the others. */
export function refuseTooMuch(profile: KeptProfile, kept: readonly KeptProfile[]): void {
  const others = kept.filter(({ name }) => name !== profile.name);
  if (others.length >= MOST.profiles) {
    throw new RdError(
      'ERR_PROFILE_INVALID',
      `${profile.name} cannot be kept, because ${others.length} profiles are kept already; nothing was changed.`,
      { advice: 'Put several into one profile, or run `rdctl release NAME` for one that is no longer needed.' },
    );
  }
  const characters = [...others, profile].reduce((sum, each) => sum + JSON.stringify(each).length, 0);
  if (characters <= MOST.characters) return;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${profile.name} cannot be kept: with it, the kept profiles would have ${characters} characters, and the most are ${MOST.characters}; nothing was changed.`,
    { advice: 'Shorten its lists, or release another profile.' },
  );
}
