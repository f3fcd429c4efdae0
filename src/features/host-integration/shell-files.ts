import { posix } from 'node:path';
import { RdError } from '../../errors.ts';
import { findProgram, shellWord } from '../../os/program.ts';
import { isThere } from '../../os/regular-file.ts';
import { type IntegrationOutcome, outcomeOf } from './outcome.ts';
import { withBlock, withoutBlock } from './shell-block.ts';
import type { IntegrationTargets } from './targets.ts';
import { type EditContext, editUserFile, isFreeOf } from './user-file.ts';

/** `application.pathManagementStrategy` */
export type PathStrategy = 'manual' | 'rcfiles';

type ShellName = 'bash' | 'zsh' | 'csh' | 'tcsh' | 'fish';

interface ShellFile {
  path: string;
  line: (directory: string) => string;
  shells: readonly ShellName[];
}

/** A bash login shell reads only the first of these that exists. */
const BASH_LOGIN = ['.bash_profile', '.bash_login', '.profile'];

/**
 * Adds our directory to the PATH of the user's shells, or removes it: a marked block in each of their files. Creates a missing file where
 * its shell is installed, and deletes it with the block. Never throws: a file that cannot be changed does not prevent the others.
 * @returns one outcome per checked file, in a fixed order.
 */
export async function managePath(
  strategy: PathStrategy,
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  const all = shellFiles(targets.home);
  const managed = strategy === 'rcfiles' ? await filesToManage(all, targets.searchPath) : new Set<string>();
  const outcomes: IntegrationOutcome[] = [];
  for (const file of all) {
    const outcome = await (managed.has(file.path) ? addBlock : removeBlock)(file, targets, context);
    if (outcome) outcomes.push(outcome);
  }
  return outcomes;
}

function shellFiles(home: string): ShellFile[] {
  const file = (name: string, line: ShellFile['line'], ...shells: ShellName[]) => ({
    path: posix.join(home, name),
    line,
    shells,
  });
  return [
    file('.bashrc', PATH_LINES.posix, 'bash'),
    ...BASH_LOGIN.map((name) => file(name, PATH_LINES.posix, 'bash')),
    file('.zshrc', PATH_LINES.posix, 'zsh'),
    file('.cshrc', PATH_LINES.csh, 'csh', 'tcsh'),
    file('.tcshrc', PATH_LINES.csh, 'tcsh'),
    file('.config/fish/config.fish', PATH_LINES.fish, 'fish'),
  ];
}

/** A missing file is created only for an installed shell. */
async function filesToManage(all: readonly ShellFile[], searchPath: string): Promise<Set<string>> {
  const there = new Set<string>();
  for (const { path } of all) if (await isThere(path)) there.add(path);
  const login = all.filter(({ path }) => BASH_LOGIN.includes(posix.basename(path))).map(({ path }) => path);
  const firstLogin = login.find((path) => there.has(path)) ?? login[0];
  const managed = new Set<string>();
  for (const { path, shells } of all) {
    if (login.includes(path) && path !== firstLogin) continue;
    // tcsh reads .cshrc only without a .tcshrc: a new one would hide the user's .cshrc.
    const hides = posix.basename(path) === '.tcshrc';
    if (there.has(path) || (!hides && (await isAnyInstalled(shells, searchPath)))) managed.add(path);
  }
  return managed;
}

async function isAnyInstalled(shells: readonly ShellName[], searchPath: string): Promise<boolean> {
  for (const name of shells) if ((await findProgram(name, searchPath)) !== undefined) return true;
  return false;
}

function addBlock({ path, line }: ShellFile, { home, bin, identity }: IntegrationTargets, context: EditContext) {
  return outcomeOf({ part: 'path', file: path }, async () => {
    const lines = [bytes(line(bin))];
    await editUserFile(path, (text) => withBlock(text, lines, marksOf(identity)), {
      within: [home],
      what: `adds ${bin} to PATH`,
      ...context,
    });
    return 'managed';
  });
}

/** Most files do not exist, and have no outcome. */
async function removeBlock({ path }: ShellFile, targets: IntegrationTargets, context: EditContext) {
  if (!(await isThere(path))) return undefined;
  const { home, bin, identity } = targets;
  return outcomeOf({ part: 'path', file: path }, async () => {
    if (await isFreeOf(path, bytes(identity.blockStart), context)) return 'clean';
    const change = (text: string | undefined) =>
      text === undefined ? undefined : withoutBlock(text, marksOf(identity));
    await editUserFile(path, change, { within: [home], what: `removes ${bin} from PATH`, ...context });
    return 'clean';
  });
}

function marksOf({ blockStart, blockEnd }: IntegrationTargets['identity']) {
  return { start: blockStart, end: blockEnd };
}

/** File texts are one character per byte. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Contains nothing special to a shell, even between double quotes. */
const PLAIN = /^[\w@%+=.,/~ -]+$/;

/** Lines that put a directory first on the PATH, by kind of shell. */
export const PATH_LINES = {
  posix: (directory: string) => `export PATH="${inQuotes(directory, shellWord)}:$PATH"`,
  csh: (directory: string) => `setenv PATH "${inQuotes(directory, cshQuoted)}:$PATH"`,
  fish: (directory: string) => `set --export --prepend PATH ${quotedWhole(directory)}`,
} as const;

/** Text inside existing double quotes; closes and reopens them around special characters. */
function inQuotes(directory: string, quote: (text: string) => string): string {
  return PLAIN.test(checked(directory)) ? directory : `"${quote(directory)}"`;
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
  if (!/[:\n\r\0]/.test(directory)) return directory;
  const problem = 'it contains a colon or a line break';
  throw new RdError('ERR_IO', `the directory ${JSON.stringify(directory)} cannot be on a PATH: ${problem}`, {
    advice: 'Move the data directory (XDG_DATA_HOME) to a plain path.',
  });
}
