import { RdError } from '../../errors.ts';

/** Contains nothing special to a shell, even between double quotes. */
const PLAIN = /^[\w@%+=.,/~ -]+$/;

/** Lines that put a directory first on the PATH, by kind of shell. */
export const PATH_LINES = {
  posix: (directory: string) => `export PATH="${inQuotes(directory, posixQuoted)}:$PATH"`,
  csh: (directory: string) => `setenv PATH "${inQuotes(directory, cshQuoted)}:$PATH"`,
  fish: (directory: string) => `set --export --prepend PATH ${quotedWhole(directory)}`,
} as const;

/** A word for a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Text inside existing double quotes; closes and reopens them around special characters. */
function inQuotes(directory: string, quote: (text: string) => string): string {
  return PLAIN.test(checked(directory)) ? directory : `"${quote(directory)}"`;
}

function posixQuoted(text: string): string {
  return shellWord(text);
}

/** csh expands history between single quotes too. */
function cshQuoted(text: string): string {
  return shellWord(text).replaceAll('!', '\\!');
}

function quotedWhole(directory: string): string {
  if (PLAIN.test(checked(directory))) return `"${directory}"`;
  return `'${directory.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** @throws RdError `ERR_IO` for a directory that a PATH cannot contain. */
function checked(directory: string): string {
  const bad = /[:\n\r\0]/.exec(directory);
  if (!bad) return directory;
  throw new RdError(
    'ERR_IO',
    `the directory ${JSON.stringify(directory)} cannot be on a PATH: it holds a ${name(bad[0])}`,
    {
      advice: 'Move the data directory (XDG_DATA_HOME) to a plain path.',
    },
  );
}

function name(character: string): string {
  return character === ':' ? 'colon' : 'line end';
}
