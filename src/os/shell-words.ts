/**
 * One word of a command line for a POSIX shell, which ssh always hands a command to. Everything between single quotes is itself, so
 * that nothing in a word can become anything else. A NUL cannot be in a word of any program.
 */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command line for a POSIX shell with exactly these words. */
export function shellLine(argv: readonly string[]): string {
  return argv.map(shellWord).join(' ');
}
