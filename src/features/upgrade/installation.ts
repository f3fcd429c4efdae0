import { realpath } from 'node:fs/promises';
import { RdError } from '../../errors.ts';
import { findProgram, programPath } from '../../os/program.ts';
import { run } from '../../os/run.ts';
import type { Platform } from '../../settings/field.ts';

/** How this program was installed on this computer. */
export interface Origin {
  /** The package manager that manages it, as the end of `it was installed …`. */
  how: string;
  /** The way to upgrade it, as a sentence. */
  advice: string;
}

/**
 * Returns the real path of the running standalone file, with links followed.
 * @param self program and first arguments that restart this tool.
 * @throws RdError `ERR_UPGRADE_REFUSED` with the right command if something else manages the program.
 */
export async function standaloneFile(
  self: readonly string[],
  platform: Platform,
  path: string | undefined,
): Promise<string> {
  const program = await realpath(self.at(-1) ?? '').catch(() => self.at(-1) ?? '');
  const origin =
    self.length > 1 ? originOfScript(program) : originOfFile(program, await owningPackage(program, platform, path));
  if (origin === undefined) return program;
  throw new RdError('ERR_UPGRADE_REFUSED', `this rdctl was installed ${origin.how}, and is not upgraded by itself`, {
    advice: origin.advice,
  });
}

/** Returns the origin of a program that is a script for Node. */
export function originOfScript(script: string): Origin {
  if (/[\\/]node_modules[\\/]/.test(script)) {
    return {
      how: `with npm (${script})`,
      advice: 'Upgrade it with npm: `npm install --global PACKAGE`, with the package of the newer release.',
    };
  }
  return {
    how: `from a clone (${script})`,
    advice: 'Upgrade the clone: `git pull && npm ci`. Only the standalone file upgrades itself.',
  };
}

/** Returns the origin of the standalone file; undefined if only we manage it. @param debianPackage the package that it belongs to. */
export function originOfFile(file: string, debianPackage: string | undefined): Origin | undefined {
  if (debianPackage !== undefined) {
    return {
      how: `with the Debian package ${debianPackage} (${file})`,
      advice: `Install the package of the newer release: \`sudo apt install ./${debianPackage}_VERSION_ARCHITECTURE.deb\`.`,
    };
  }
  const manager = MANAGERS.find(({ place }) => place.test(file));
  return manager && { how: `with ${manager.name} (${file})`, advice: `Run \`${manager.command}\`.` };
}

const MANAGERS: readonly { name: string; place: RegExp; command: string }[] = [
  { name: 'Homebrew', place: /\/Cellar\//, command: 'brew upgrade rdctl' },
  { name: 'scoop', place: /[\\/]scoop[\\/]apps[\\/]/i, command: 'scoop update rdctl' },
  { name: 'winget', place: /[\\/]WinGet[\\/]Packages[\\/]/i, command: 'winget upgrade rdctl.rdctl' },
];

/** Returns the Debian package that a file belongs to; undefined without one. */
async function owningPackage(file: string, platform: Platform, path: string | undefined): Promise<string | undefined> {
  if (platform !== 'linux') return undefined;
  const query = await findProgram('dpkg-query', programPath(path));
  if (query === undefined) return undefined;
  // The program takes a pattern, in which these characters are special.
  const literal = file.replace(/[\\*?[\]]/g, '\\$&');
  const { stdout } = await run([query, '--search', literal], { accept: [0, 1] });
  return /^([a-z0-9][a-z0-9+.-]+)(?::[a-z0-9-]+)?(?:,[^:]*)?: \//m.exec(stdout)?.[1];
}
