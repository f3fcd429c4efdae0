import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { run } from '../../src/os/run.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Platform } from '../../src/settings/field.ts';
import { PROFILE_LIMIT } from '../formats/format.ts';

/** A location where an administrator or a user may place the two deployment profiles. */
export type PolicyPlace = (
  | /** Paths of two files. */ { format: 'json' | 'plist'; defaults: string; locked: string }
  /** A registry key with the sub-keys `Defaults` and `Locked`; the hive is `HKLM` or `HKCU`. */
  | { format: 'registry'; key: string }
) & {
  /** Set for a location of the user, who can fix the profile. */
  own?: true;
  /** Set for a system-wide location, whose profile must be owned by root. */
  system?: true;
};

/** Environment variables that determine the user's location; other locations depend on none. */
type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the locations of deployment profiles on this platform, highest precedence first. System locations do not depend on the environment, so that
 * users cannot bypass a policy with a variable. Without a home directory there is no user location.
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

/** The display name of a location. */
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

/** Access to the Windows registry; replaced in tests. */
export interface PolicyPrograms {
  /** Returns the output of `reg query KEY`; undefined when it fails, usually because the key does not exist. */
  queryRegistry(key: string): Promise<string | undefined>;
  /** Returns the key and everything below it as a `.reg` file, which is lossless. */
  exportRegistry(key: string): Promise<Uint8Array>;
}

/** Path of the registry program. It is absolute, so that the search path cannot substitute another program. */
const REG = 'C:\\Windows\\System32\\reg.exe';
const LIMITS = { timeoutMs: 10_000, maxOutput: 4 * PROFILE_LIMIT };

/**
 * Returns access through the real program.
 * @param reg program and first arguments, replaceable by a script in tests. By default the absolute path, or the name alone if Windows is
 *   installed elsewhere.
 */
export function policyPrograms(reg: readonly string[] = [existsSync(REG) ? REG : 'reg.exe']): PolicyPrograms {
  return {
    async queryRegistry(key) {
      try {
        return (await run([...reg, 'query', key], LIMITS)).stdout;
      } catch (error) {
        // The program's message is localized, so only the exit status shows that the key was not found.
        if (
          error instanceof RdError &&
          error.code === 'ERR_DRIVER_FAILED' &&
          / exit status 1(?::|$)/.test(error.message)
        ) {
          return undefined;
        }
        throw error;
      }
    },
    async exportRegistry(key) {
      const directory = await mkdtemp(join(tmpdir(), 'rdctl-policy-'));
      try {
        const file = join(directory, 'key.reg');
        await run([...reg, 'export', key, file, '/y'], LIMITS);
        return await readFile(file);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
  };
}
