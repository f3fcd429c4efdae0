import { posix } from 'node:path';
import { readIfThere } from '../../os/atomic-file.ts';
import { findProgram } from '../../os/program.ts';
import { isThere } from '../../os/regular-file.ts';
import { adviceText, loginShellAdvice, type ShellAdvice } from './login-shell.ts';
import { type IntegrationOutcome, outcomeOf } from './outcome.ts';
import { withBlock, withoutBlock } from './shell-block.ts';
import { namesDirectory, PATH_LINES } from './shell-lines.ts';
import type { IntegrationTargets } from './targets.ts';
import { type EditContext, editUserFile, isFreeOf } from './user-file.ts';

/** The setting `application.pathManagementStrategy`. */
export type PathStrategy = 'manual' | 'rcfiles';

type ShellName = 'bash' | 'zsh' | 'csh' | 'tcsh' | 'fish';

interface ShellFile {
  path: string;
  line: (directory: string, home: string) => string;
  shells: readonly ShellName[];
  /** Set if the shell looks elsewhere: nothing is added, and a block that we added before the user moved the file is removed. */
  unread?: true;
}

/** A bash login shell reads only the first of these that exists. */
const BASH_LOGIN = ['.bash_profile', '.bash_login', '.profile'];

/**
 * Adds our directory to the PATH of the user's shells, or removes it: a marked block in each of their files. Creates a missing file if its shell is
 * installed, and deletes it with the block. Never throws: a file that cannot be changed does not prevent the others.
 * @returns one outcome per checked file, in a fixed order, and one for a login shell that reads none of them.
 */
export async function managePath(
  strategy: PathStrategy,
  targets: IntegrationTargets,
  context: EditContext = {},
): Promise<IntegrationOutcome[]> {
  const all = await shellFiles(targets);
  const managed = strategy === 'rcfiles' ? await filesToManage(all, targets.searchPath) : new Set<string>();
  const outcomes: IntegrationOutcome[] = [];
  for (const file of all) {
    const outcome = await (managed.has(file.path) ? addBlock : removeBlock)(file, targets, context);
    if (outcome && !(file.unread && outcome.state === 'clean')) outcomes.push(outcome);
  }
  const advice = strategy === 'rcfiles' ? await loginShellAdvice(targets, managed) : undefined;
  if (advice) outcomes.push({ part: 'path', file: advice.file, state: 'left', message: adviceText(advice) });
  return outcomes;
}

/** Removes our block from the user's shell files at these paths. Never throws. */
export async function removeBlocks(paths: readonly string[], targets: IntegrationTargets): Promise<void> {
  for (const file of await shellFiles(targets)) if (paths.includes(file.path)) await removeBlock(file, targets, {});
}

/** Returns the line to add for the user's login shell if `managePath` edits none of its files. */
export async function shellToSetUp(targets: IntegrationTargets): Promise<ShellAdvice | undefined> {
  return loginShellAdvice(targets, await filesToManage(await shellFiles(targets), targets.searchPath));
}

/** Returns the files that shells read, and their usual places if they read none. */
async function shellFiles({ home, zshDirectory, configDirectory }: IntegrationTargets): Promise<ShellFile[]> {
  const file = (path: string, line: ShellFile['line'], ...shells: ShellName[]): ShellFile => ({ path, line, shells });
  const moved = (usual: string, read: string, line: ShellFile['line'], shell: ShellName): ShellFile[] => [
    file(read, line, shell),
    ...(read === usual ? [] : [{ ...file(usual, line, shell), unread: true as const }]),
  ];
  const inHome = (name: string) => posix.join(home, name);
  const zsh = zshDirectory ?? (await assignedZdotdir(home, configDirectory)) ?? home;
  return [
    file(inHome('.bashrc'), PATH_LINES.posix, 'bash'),
    ...BASH_LOGIN.map((name) => file(inHome(name), PATH_LINES.posix, 'bash')),
    ...moved(inHome('.zshrc'), posix.join(zsh, '.zshrc'), PATH_LINES.posix, 'zsh'),
    file(inHome('.cshrc'), PATH_LINES.csh, 'csh', 'tcsh'),
    file(inHome('.tcshrc'), PATH_LINES.csh, 'tcsh'),
    ...moved(
      inHome('.config/fish/config.fish'),
      posix.join(configDirectory, 'fish', 'config.fish'),
      PATH_LINES.fish,
      'fish',
    ),
  ];
}

/** Matches `ZDOTDIR=VALUE` on a line of its own, exported or not. */
const ZDOTDIR = /^[ \t]*(?:export[ \t]+)?ZDOTDIR=(["']?)([^\s"'`;&|()]+)\1[ \t]*;?[ \t]*(?:#.*)?$/gm;

/**
 * Returns the value that `.zshenv` assigns to `ZDOTDIR`: a service that was started at login does not have the variable. Undefined if it assigns
 * none, or one that only zsh can evaluate.
 */
async function assignedZdotdir(home: string, configDirectory: string): Promise<string | undefined> {
  const text = (await readIfThere(posix.join(home, '.zshenv'), { follow: true }).catch(() => undefined)) ?? '';
  const value = [...text.matchAll(ZDOTDIR)].at(-1)?.[2];
  const path = value
    ?.replace(
      /^(?:\$XDG_CONFIG_HOME|\$\{XDG_CONFIG_HOME(?::-(?:\$HOME|\$\{HOME\}|~)\/\.config)?\})(?=\/|$)/,
      configDirectory,
    )
    .replace(/^(?:\$HOME|\$\{HOME\}|~)(?=\/|$)/, home);
  return path !== undefined && posix.isAbsolute(path) && !path.includes('$') ? posix.normalize(path) : undefined;
}

/** Returns the files to manage. A missing file is created only for an installed shell. */
async function filesToManage(all: readonly ShellFile[], searchPath: string): Promise<Set<string>> {
  const there = new Set<string>();
  const read = all.filter(({ unread }) => !unread);
  for (const { path } of read) if (await isThere(path)) there.add(path);
  const login = all.filter(({ path }) => BASH_LOGIN.includes(posix.basename(path))).map(({ path }) => path);
  const firstLogin = login.find((path) => there.has(path)) ?? login[0];
  const managed = new Set<string>();
  for (const { path, shells } of read) {
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

function addBlock({ path, line }: ShellFile, targets: IntegrationTargets, context: EditContext) {
  const { home, bin, identity } = targets;
  return outcomeOf({ part: 'path', file: path }, async () => {
    const lines = [bytes(line(bin, home))];
    const isKept = (written: readonly string[]) => namesDirectory(written, bytes(bin), bytes(home));
    await editUserFile(path, (text) => withBlock(text, lines, marksOf(identity), isKept), {
      within: linkRoots(targets),
      what: `adds ${bin} to PATH`,
      ...context,
    });
    return 'managed';
  });
}

function linkRoots({ home, zshDirectory, configDirectory }: IntegrationTargets): string[] {
  return [home, configDirectory, ...(zshDirectory === undefined ? [] : [zshDirectory])];
}

/** Removes our block from a file. Most files do not exist, and have no outcome. */
async function removeBlock({ path }: ShellFile, targets: IntegrationTargets, context: EditContext) {
  if (!(await isThere(path))) return undefined;
  const { bin, identity } = targets;
  return outcomeOf({ part: 'path', file: path }, async () => {
    if (await isFreeOf(path, bytes(identity.blockStart), context)) return 'clean';
    const change = (text: string | undefined) =>
      text === undefined ? undefined : withoutBlock(text, marksOf(identity));
    await editUserFile(path, change, { within: linkRoots(targets), what: `removes ${bin} from PATH`, ...context });
    return 'clean';
  });
}

function marksOf({ blockStart, blockEnd }: IntegrationTargets['identity']) {
  return { start: blockStart, end: blockEnd };
}

/** Converts a text to one character per byte, the form of file texts. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
