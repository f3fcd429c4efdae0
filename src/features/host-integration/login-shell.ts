import { basename, posix } from 'node:path';
import { readIfThere } from '../../os/atomic-file.ts';
import { namesDirectory, PATH_LINES } from './shell-lines.ts';
import type { IntegrationTargets } from './targets.ts';

/** A line for a person to add to the file of a shell that we do not edit. */
export interface ShellAdvice {
  shell: string;
  file: string;
  line: string;
}

interface OtherShell {
  /** File below the configuration directory of the user. */
  file: string;
  line: (directory: string) => string;
}

const OTHER: Readonly<Record<string, OtherShell>> = {
  nu: {
    file: 'nushell/config.nu',
    line: (directory) => `$env.PATH = ($env.PATH | prepend ${JSON.stringify(directory)})`,
  },
  pwsh: { file: 'powershell/profile.ps1', line: (directory) => `$env:PATH = "${directory}:$env:PATH"` },
  elvish: { file: 'elvish/rc.elv', line: (directory) => `set paths = [${JSON.stringify(directory)} $@paths]` },
  xonsh: { file: 'xonsh/rc.xsh', line: (directory) => `$PATH.insert(0, ${JSON.stringify(directory)})` },
};
/** Shells that read `.profile` at a login, which we edit only if bash reads it, too. */
const READ_PROFILE = ['sh', 'dash', 'ash', 'ksh', 'ksh93', 'mksh', 'yash'];
const MAX_BYTES = 1024 * 1024;

/**
 * Returns the line for a login shell that reads none of the files that we edit. Undefined if it reads one, has the line already, or is unknown.
 * @param edited the files that we edit.
 */
export async function loginShellAdvice(
  { loginShell, home, bin, configDirectory, searchPath }: IntegrationTargets,
  edited: ReadonlySet<string>,
): Promise<ShellAdvice | undefined> {
  const shell = basename(loginShell ?? '');
  const advice = adviceFor(shell, { home, bin, configDirectory });
  if (!advice || edited.has(advice.file) || searchPath.split(':').includes(bin)) return undefined;
  const text = await readIfThere(advice.file, { follow: true, limit: MAX_BYTES }).catch(() => undefined);
  return text !== undefined && namesDirectory(text.split('\n'), bin, home) ? undefined : advice;
}

function adviceFor(
  shell: string,
  { home, bin, configDirectory }: Pick<IntegrationTargets, 'home' | 'bin' | 'configDirectory'>,
): ShellAdvice | undefined {
  if (READ_PROFILE.includes(shell)) {
    return { shell, file: posix.join(home, '.profile'), line: PATH_LINES.posix(bin, home) };
  }
  const other = Object.hasOwn(OTHER, shell) ? OTHER[shell] : undefined;
  return other && { shell, file: posix.join(configDirectory, other.file), line: other.line(bin) };
}

/** Formats the advice as one line for a person. */
export function adviceText({ shell, file, line }: ShellAdvice): string {
  return `rdctl does not edit the files of your login shell ${shell}; to find its programs, add to ${file}: ${line}`;
}
