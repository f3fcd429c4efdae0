import { build, parse } from 'plist';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { readIfThere } from '../../os/atomic-file.ts';
import { run } from '../../os/run.ts';
import { PRODUCT } from '../../product.ts';
import { outcomeOf } from './attempt.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { type IntegrationTargets, launcherOf } from './targets.ts';
import { type EditSurroundings, editUserFile, missingDirectories, removeEmptyDirectories } from './user-file.ts';

interface AutostartSurroundings extends EditSurroundings {
  runKey?: RunKey;
}

/** Lines that identify a desktop entry as ours. */
const MARK = 'X-Rdctl-Managed';
const DIRECTORIES = 'X-Rdctl-Directories';
/** A registry value has no room for a mark; the end of the path identifies ours, whatever the console makes of the rest. */
const STARTS_US = new RegExp(`\\\\${PRODUCT.name}\\.cmd" start$`, 'i');
const FOREIGN = 'somebody else has made this entry';

/** Creates or removes the entry that starts the service at login. Never throws. */
export async function manageAutostart(
  wanted: boolean,
  targets: IntegrationTargets,
  around: AutostartSurroundings = {},
): Promise<IntegrationOutcome> {
  const { autostartFile, identity } = targets;
  const { runKey = windowsRunKey, ...edits } = around;
  const what = wanted ? `starts ${PRODUCT.name} at login` : `no longer starts ${PRODUCT.name} at login`;
  if (autostartFile === undefined) {
    const name = identity.autostart.win32;
    const file = runKey.place(name);
    return outcomeOf({ part: 'autostart', file }, async () => {
      const command = await runKey.get(name);
      if (command !== undefined && !STARTS_US.test(command)) return { left: FOREIGN };
      const next = wanted ? `"${launcherOf(targets)}" start` : undefined;
      if (around.rehearsal) {
        const action = next === undefined ? 'delete' : command === undefined ? 'create' : 'update';
        if (next !== command) around.rehearsal.set(file, { file, action, what });
      } else if (next !== undefined) await runKey.set(name, next);
      else if (command !== undefined) await runKey.remove(name);
      return wanted ? 'managed' : 'clean';
    });
  }
  return outcomeOf({ part: 'autostart', file: autostartFile }, async () => {
    const text = await readIfThere(autostartFile, { follow: true });
    if (text !== undefined && !isOurs(text, targets)) return { left: FOREIGN };
    if (!wanted && text === undefined) return 'clean';
    const directories = text === undefined ? await missingDirectories(autostartFile) : directoriesOf(text);
    const next = wanted ? bytes(entryText(targets, directories)) : undefined;
    await editUserFile(autostartFile, () => next, {
      within: [targets.home],
      mode: 0o644,
      what,
      ...edits,
    });
    if (!wanted) await removeEmptyDirectories(autostartFile, directories, edits);
    return wanted ? 'managed' : 'clean';
  });
}

function entryText(targets: IntegrationTargets, directories: number): string {
  const launcher = launcherOf(targets);
  if (targets.platform === 'darwin') return launchAgent(targets, launcher, directories);
  const lines = [
    '[Desktop Entry]',
    'Type=Application',
    `Name=${PRODUCT.name}`,
    'Comment=Starts the container desktop service',
    `Exec=${execWord(launcher)} start`,
    'Terminal=false',
    'NoDisplay=true',
    `${MARK}=true`,
    `${DIRECTORIES}=${directories}`,
  ];
  return `${lines.join('\n')}\n`;
}

function launchAgent({ identity }: IntegrationTargets, launcher: string, directories: number): string {
  const label = identity.autostart.darwin.replace(/\.plist$/, '');
  const agent = {
    Label: label,
    ProgramArguments: [launcher, 'start'],
    RunAtLoad: true,
    [MARK]: true,
    [DIRECTORIES]: directories,
  };
  return `${build(agent)}\n`;
}

/** Desktop entry quoting: a string escape around a quoted argument, in which a percent sign is a field code. */
function execWord(text: string): string {
  if (/[\n\r\0]/.test(text)) {
    throw new RdError('ERR_IO', `an autostart entry cannot start ${JSON.stringify(text)}: the path holds a line end`);
  }
  const quoted = `"${text.replace(/["`$\\]/g, '\\$&')}"`;
  return quoted.replaceAll('\\', '\\\\').replaceAll('%', '%%');
}

/** By content: in drop-in mode the compatible application creates one of the same name. */
function isOurs(text: string, { platform }: IntegrationTargets): boolean {
  return platform === 'darwin' ? agentOf(text)?.[MARK] === true : new RegExp(`^${MARK}=true$`, 'm').test(text);
}

function directoriesOf(text: string): number {
  const agent = agentOf(text)?.[DIRECTORIES];
  return typeof agent === 'number'
    ? agent
    : Number(new RegExp(`^${DIRECTORIES}=(\\d{1,3})$`, 'm').exec(text)?.[1] ?? 0);
}

function agentOf(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('<?xml')) return undefined;
  try {
    const value: unknown = parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The values below the Windows Run key; replaced in tests. */
export interface RunKey {
  /** Display name of a value. */
  place(name: string): string;
  /** The command of a value, as the console shows it; `undefined` when there is no such value. */
  get(name: string): Promise<string | undefined>;
  set(name: string, command: string): Promise<void>;
  /** For an existing value. */
  remove(name: string): Promise<void>;
}

const KEY = 'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run';

/** The registry, by way of `reg.exe`. Exit status 1 on a query means that there is no such value. */
export function runKeyWith(execute: typeof run): RunKey {
  return {
    place: (name) => `${KEY}\\${name}`,
    async get(name) {
      const { exitCode, stdout } = await execute(['reg.exe', 'query', KEY, '/v', name], { accept: [0, 1] });
      // `    NAME    REG_SZ    COMMAND`; a value of another type is foreign, and reads as empty.
      return exitCode === 0 ? (/ REG_SZ +(.*?)\s*$/m.exec(stdout)?.[1] ?? '') : undefined;
    },
    async set(name, command) {
      await execute(['reg.exe', 'add', KEY, '/v', name, '/t', 'REG_SZ', '/d', command, '/f']);
    },
    async remove(name) {
      await execute(['reg.exe', 'delete', KEY, '/v', name, '/f']);
    },
  };
}

const windowsRunKey: RunKey = runKeyWith(run);
