import { lstat, rename } from 'node:fs/promises';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { readIfThere, writeFileAtomic } from '../../os/atomic-file.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { shellWord } from '../../os/program.ts';
import { isThere, readRegular } from '../../os/regular-file.ts';
import { run } from '../../os/run.ts';
import { DROP_IN, DROP_IN_IDENTITY, PRODUCT } from '../../product.ts';
import { type IntegrationOutcome, outcomeOf } from './outcome.ts';
import { type IntegrationTargets, launcherOf } from './targets.ts';
import { type EditContext, editUserFile } from './user-file.ts';

/** Marker in every launcher of ours. */
const MARK = `written by ${PRODUCT.name}: it starts ${PRODUCT.name}`;
/** Maximum bytes of a launcher; a launcher has some hundred. */
const MAX_BYTES = 65_536;

/**
 * Writes the launcher for this tool on the PATH. It starts the current Node with the current script, so it works even if neither is on the PATH. In
 * drop-in mode it sets the variable, which is unset at login and in scripts. Renames a foreign program of the same name, such as the compatible
 * application's in drop-in mode. Must only be called for directories that are ours or were adopted.
 * @returns the new path of a foreign program, if there was one.
 * @throws RdError `ERR_IO` when it cannot be written.
 */
export async function writeLauncher(targets: IntegrationTargets): Promise<string | undefined> {
  const path = launcherOf(targets);
  const { self, platform, identity } = targets;
  const dropIn = identity === DROP_IN_IDENTITY;
  const text =
    platform === 'win32'
      ? `@echo off\r\nrem ${MARK}\r\n${dropIn ? `set "RDCTL_COMPAT=${DROP_IN}"\r\n` : ''}${self.map((word) => `"${word}"`).join(' ')} %*\r\n`
      : `#!/bin/sh\n# ${MARK}\n${dropIn ? `export RDCTL_COMPAT=${DROP_IN}\n` : ''}exec ${self.map(shellWord).join(' ')} "$@"\n`;
  const renamedTo = await renameForeign(path);
  await writeFileAtomic(path, text, { mode: 0o755 });
  return renamedTo;
}

/** Renames a foreign program. A link is never ours, wherever it leads. */
async function renameForeign(path: string): Promise<string | undefined> {
  try {
    const facts = await lstat(path).catch((cause: unknown) => {
      if (systemCode(cause) !== 'ENOENT') throw cause;
    });
    if (!facts) return undefined;
    if (facts.isFile() && facts.size <= MAX_BYTES && (await readRegular(path)).includes(MARK)) return undefined;
    for (let number = 1; ; number += 1) {
      const name = `${path}.before-${PRODUCT.name}${number === 1 ? '' : `-${number}`}`;
      if (await isThere(name)) continue;
      await rename(path, name);
      return name;
    }
  } catch (cause) {
    throw ioError('keep', path, cause);
  }
}

interface AutostartContext extends EditContext {
  runKey?: RunKey;
}

/** The key that identifies an entry as ours. */
const ENTRY_MARK = 'X-Rdctl-Managed';
/** Matches our registry value. It has no room for a mark, so the end of the path identifies it, whatever the console makes of the rest. */
const STARTS_US = new RegExp(`\\\\${PRODUCT.name}\\.cmd" start$`, 'i');
const FOREIGN = `${PRODUCT.name} did not create this entry`;

/** Creates or removes the entry that starts the service at login. Never throws. */
export async function manageAutostart(
  enabled: boolean,
  targets: IntegrationTargets,
  context: AutostartContext = {},
): Promise<IntegrationOutcome> {
  const { autostartFile, identity } = targets;
  const { runKey = windowsRunKey, ...edits } = context;
  const what = enabled ? `starts ${PRODUCT.name} at login` : `no longer starts ${PRODUCT.name} at login`;
  if (autostartFile === undefined) {
    const name = identity.autostart.win32;
    const file = runKey.place(name);
    return outcomeOf({ part: 'autostart', file }, async () => {
      const command = await runKey.get(name);
      if (command !== undefined && !STARTS_US.test(command)) return { left: FOREIGN };
      const next = enabled ? `"${launcherOf(targets)}" start` : undefined;
      if (context.dryRun) {
        const action = next === undefined ? 'delete' : command === undefined ? 'create' : 'update';
        if (next !== command) context.dryRun.set(file, { file, action, what });
      } else if (next !== undefined) await runKey.set(name, next);
      else if (command !== undefined) await runKey.remove(name);
      return enabled ? 'managed' : 'clean';
    });
  }
  return outcomeOf({ part: 'autostart', file: autostartFile }, async () => {
    const text = await readIfThere(autostartFile, { follow: true });
    if (text !== undefined && !(await isOurs(text, targets))) return { left: FOREIGN };
    if (!enabled && text === undefined) return 'clean';
    const next = enabled ? Buffer.from(await entryText(targets), 'utf8').toString('latin1') : undefined;
    await editUserFile(autostartFile, () => next, {
      within: [targets.home],
      mode: 0o644,
      what,
      ...edits,
    });
    return enabled ? 'managed' : 'clean';
  });
}

async function entryText({ platform, identity, bin }: IntegrationTargets): Promise<string> {
  const launcher = launcherOf({ platform, bin });
  if (platform === 'darwin') {
    const agent = {
      Label: identity.autostart.darwin.replace(/\.plist$/, ''),
      ProgramArguments: [launcher, 'start'],
      RunAtLoad: true,
      [ENTRY_MARK]: true,
    };
    return `${(await import('plist')).build(agent)}\n`;
  }
  const lines = [
    '[Desktop Entry]',
    'Type=Application',
    `Name=${PRODUCT.name}`,
    'Comment=Starts the container desktop service',
    `Exec=${execWord(launcher)} start`,
    'Terminal=false',
    'NoDisplay=true',
    `${ENTRY_MARK}=true`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Quotes a word for a desktop entry: a string escape around a quoted argument, in which a percent sign is a field code. */
function execWord(text: string): string {
  if (/[\n\r\0]/.test(text)) {
    throw new RdError(
      'ERR_IO',
      `an autostart entry cannot start ${JSON.stringify(text)}: the path contains a line break`,
    );
  }
  const quoted = `"${text.replace(/["`$\\]/g, '\\$&')}"`;
  return quoted.replaceAll('\\', '\\\\').replaceAll('%', '%%');
}

/** Whether an entry is ours, by its content: in drop-in mode the compatible application creates one of the same name. */
async function isOurs(text: string, { platform }: IntegrationTargets): Promise<boolean> {
  if (platform !== 'darwin') return new RegExp(`^${ENTRY_MARK}=true$`, 'm').test(text);
  const { parse } = await import('plist');
  try {
    const agent: unknown = parse(text);
    return isObject(agent) && agent[ENTRY_MARK] === true;
  } catch {
    return false;
  }
}

/** The values below the Windows Run key; replaced in tests. */
export interface RunKey {
  /** Returns the display name of a value. */
  place(name: string): string;
  /** Returns the command of a value, as the console shows it; undefined when there is no such value. */
  get(name: string): Promise<string | undefined>;
  set(name: string, command: string): Promise<void>;
  /** Removes an existing value. */
  remove(name: string): Promise<void>;
}

const KEY = 'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run';

/** Returns access to the registry through `reg.exe`. Exit status 1 on a query means that there is no such value. */
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
