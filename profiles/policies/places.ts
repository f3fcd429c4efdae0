import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { run } from '../../src/os/run.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Platform } from '../../src/settings/field.ts';
import { PROFILE_LIMIT } from '../formats/format.ts';

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

/** What Windows has for reading its registry. Tests provide their own. */
export interface PolicyPrograms {
  /** What `reg query KEY` prints; `undefined` when it fails, mostly because the key does not exist. */
  queryRegistry(key: string): Promise<string | undefined>;
  /** The key and everything below it in the form of a `.reg` file, which loses nothing. */
  exportRegistry(key: string): Promise<Uint8Array>;
}

/** A place that no search path leads astray. */
const REG = 'C:\\Windows\\System32\\reg.exe';
const LIMITS = { timeoutMs: 10_000, maxOutput: 4 * PROFILE_LIMIT };

/**
 * The real program.
 * @param reg program and first arguments, so that a script can stand in. If Windows is on another drive, it is found by its name.
 */
export function policyPrograms(reg: readonly string[] = [existsSync(REG) ? REG : 'reg.exe']): PolicyPrograms {
  return {
    async queryRegistry(key) {
      try {
        return (await run([...reg, 'query', key], LIMITS)).stdout;
      } catch (error) {
        // Its message is in the user's language; only the status says that it ran and found nothing.
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
