import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { run } from '../../src/os/run.ts';
import { PROFILE_LIMIT } from '../formats/format.ts';

/** The programs of the operating systems that know where profiles are. Tests give others. */
export interface PolicyPrograms {
  /** A property list of any form as JSON. Throws when it is none. */
  plistAsJson(path: string): Promise<string>;
  /** What `reg query KEY` prints, with everything below it where `deep`; `undefined` when it fails, mostly for want of the key. */
  queryRegistry(key: string, deep: boolean): Promise<string | undefined>;
  /** The key and everything below it in the form of a `.reg` file, which loses nothing. */
  exportRegistry(key: string): Promise<Uint8Array>;
}

/** Program and first arguments, so that a script can stand in. */
interface ProgramNames {
  plutil: readonly string[];
  reg: readonly string[];
}

/** Places that no search path leads astray. */
const PLUTIL = '/usr/bin/plutil';
const REG = 'C:\\Windows\\System32\\reg.exe';
const LIMITS = { timeoutMs: 10_000, maxOutput: 4 * PROFILE_LIMIT };

/** The real programs; `names` default to those of the system. */
export function policyPrograms(names: Partial<ProgramNames> = {}): PolicyPrograms {
  const plutil = names.plutil ?? [PLUTIL];
  // Where Windows is on another drive, its own path leads there.
  const reg = names.reg ?? [existsSync(REG) ? REG : 'reg.exe'];
  return {
    async plistAsJson(path) {
      return (await run([...plutil, '-convert', 'json', '-o', '-', '--', path], LIMITS)).stdout;
    },
    async queryRegistry(key, deep) {
      try {
        return (await run([...reg, 'query', key, ...(deep ? ['/s'] : [])], LIMITS)).stdout;
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
