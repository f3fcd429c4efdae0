import { RdError } from '../../errors.ts';
import { shellWord } from '../../os/program.ts';

/** Matches text with nothing special to a shell, even between double quotes. */
const PLAIN = /^[\w@%+=.,/~ -]+$/;

/**
 * Lines that put a directory first on the PATH, by kind of shell. A directory below `home` is written as `$HOME/…`: people share their dotfiles
 * between computers.
 */
export const PATH_LINES = {
  posix: (directory: string, home = '') => `export PATH="${inQuotes(directory, home, shellWord)}:$PATH"`,
  csh: (directory: string, home = '') => `setenv PATH "${inQuotes(directory, home, cshQuoted)}:$PATH"`,
  fish: (directory: string, home = '') => `set --export --prepend PATH ${quotedWhole(directory, home)}`,
} as const;

/** Quotes text inside existing double quotes; closes and reopens them around special characters. */
function inQuotes(directory: string, home: string, quote: (text: string) => string): string {
  const { start, rest } = split(directory, home);
  return start + (PLAIN.test(rest) ? rest : `"${quote(rest)}"`);
}

/** Quotes text for csh, which expands history even between single quotes. */
function cshQuoted(text: string): string {
  return shellWord(text).replaceAll('!', '\\!');
}

function quotedWhole(directory: string, home: string): string {
  const { start, rest } = split(directory, home);
  if (PLAIN.test(rest)) return `"${start}${rest}"`;
  const quoted = `'${rest.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  return start === '' ? quoted : `"${start}"${quoted}`;
}

function split(directory: string, home: string): { start: '' | '$HOME/'; rest: string } {
  const below = belowHome(checked(directory), home);
  return below === undefined ? { start: '', rest: directory } : { start: '$HOME/', rest: below };
}

/** Returns the path below the home directory; undefined for one elsewhere. */
function belowHome(directory: string, home: string): string | undefined {
  const root = home.replace(/\/+$/, '');
  return root !== '' && directory.startsWith(`${root}/`) ? directory.slice(root.length + 1) : undefined;
}

/** Returns the directory. @throws RdError `ERR_IO` for one that a PATH cannot contain. */
function checked(directory: string): string {
  if (!/[:\n\r\0]/.test(directory)) return directory;
  const problem = 'it contains a colon or a line break';
  throw new RdError('ERR_IO', `the directory ${JSON.stringify(directory)} cannot be on a PATH: ${problem}`, {
    advice: 'Move the data directory (XDG_DATA_HOME) to a plain path.',
  });
}

/**
 * Whether one of these lines puts the directory on the PATH, in any form and spelling of the home directory: our own line of this or earlier
 * releases, or a person's variant of it. Comments do not count.
 */
export function namesDirectory(lines: readonly string[], directory: string, home: string): boolean {
  const below = belowHome(directory, home);
  const spellings = [
    directory,
    ...(below === undefined ? [] : ['$HOME', `\${HOME}`, '~'].map((at) => `${at}/${below}`)),
  ];
  return lines.some((line) => {
    if (!/path/i.test(line) || line.trimStart().startsWith('#')) return false;
    const bare = line.replace(/["'\\]/g, '');
    return spellings.some((spelling) => hasPath(bare, spelling.replace(/["'\\]/g, '')));
  });
}

/** Whether a text contains a path as a whole, not as the start or the end of another one. */
function hasPath(text: string, path: string): boolean {
  for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, at + 1)) {
    const after = text.slice(at + path.length);
    if (!/[\w./~$}-]$/.test(text.slice(0, at)) && /^\/?(?![\w./~$-])/.test(after)) return true;
  }
  return false;
}
