import { posix } from 'node:path';
import { COMPATIBLE } from '../../src/product.ts';
import type { Platform } from '../../src/settings/field.ts';

/** A place where an administrator, or a user, may put the two deployment profiles. */
export type PolicyPlace = (
  | /** Paths of two files. */ { format: 'json' | 'plist'; defaults: string; locked: string }
  /** A registry key with the sub-keys `Defaults` and `Locked`; the hive is `HKLM` or `HKCU`. */
  | { format: 'registry'; key: string }
) & {
  /** It is the user's, who can correct what is there. */
  own?: true;
  /** It is the computer's: what is there has to belong to root. */
  system?: true;
};

/** Variables that the user's own place depends on; no other place depends on any. */
type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where deployment profiles are on this platform, best first. The system's places do not depend on the
 * environment, so that no variable lets a user escape a policy. Without a home directory there is no place of the user.
 */
export function policyPlaces(env: Environment, platform: Platform, homedir: string): PolicyPlace[] {
  switch (platform) {
    case 'linux':
      return linuxPlaces(env, homedir);
    case 'darwin':
      return darwinPlaces(homedir);
    case 'win32':
      return [COMPATIBLE.policyKey, COMPATIBLE.olderPolicyKey].flatMap((key) =>
        ['HKLM', 'HKCU'].map(
          (hive): PolicyPlace => ({
            format: 'registry',
            key: `${hive}\\${key}`,
            ...(hive === 'HKCU' ? { own: true } : {}),
          }),
        ),
      );
  }
}

/** The place as a person looks for it. */
export function placeName(place: PolicyPlace): string {
  return place.format === 'registry' ? place.key : `${place.defaults}, ${place.locked}`;
}

function linuxPlaces(env: Environment, homedir: string): PolicyPlace[] {
  const own = env.XDG_CONFIG_HOME;
  const home = posix.isAbsolute(homedir) ? posix.join(homedir, '.config') : undefined;
  const config = own !== undefined && posix.isAbsolute(own) ? own : home;
  return [
    { ...filesIn(COMPATIBLE.policyDirectory, ''), system: true },
    { ...filesIn(posix.join('/usr', COMPATIBLE.policyDirectory), ''), system: true },
    ...(config === undefined ? [] : [{ ...filesIn(config, `${COMPATIBLE.directory}.`), own: true as const }]),
  ];
}

function filesIn(directory: string, prefix: string): PolicyPlace {
  const path = (kind: string) => posix.join(directory, `${prefix}${kind}.json`);
  return { format: 'json', defaults: path('defaults'), locked: path('locked') };
}

function darwinPlaces(homedir: string): PolicyPlace[] {
  const filesOf = (directory: string): PolicyPlace => {
    const path = (kind: string) => posix.join(directory, `${COMPATIBLE.policyDomain}.${kind}.plist`);
    return { format: 'plist', defaults: path('defaults'), locked: path('locked') };
  };
  const own = posix.isAbsolute(homedir) ? [posix.join(homedir, 'Library', 'Preferences')] : [];
  return [
    ...['/Library/Managed Preferences', '/Library/Preferences'].map((directory) => ({
      ...filesOf(directory),
      system: true as const,
    })),
    ...own.map((directory) => ({ ...filesOf(directory), own: true as const })),
  ];
}
