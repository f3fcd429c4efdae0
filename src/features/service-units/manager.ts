import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../os/atomic-file.ts';
import type { run } from '../../os/run.ts';
import { foreignUnit, isOurs, removeOurs, replaceOurs } from './marked-files.ts';
import { launchdJob, UNIT_MARK, type UnitContent, windowsTask } from './unit-files.ts';

/** The state of this home's unit, according to a service manager. */
export interface UnitState {
  /** The file, or the name of the task: the one in force, or the one that would be written. */
  unit: string;
  /** Owner of the unit in force: written by us, part of a package, or of somebody else. Absent if there is none. */
  from?: 'install' | 'package' | 'other';
  /** Whether we wrote a unit. */
  installed: boolean;
  /** A unit of a package that is not in force, because ours takes precedence. */
  packaged?: string;
  /** Whether the unit starts the service at login, at boot, or on first use. */
  enabled: boolean;
  /** Set if nothing starts before the first use. */
  onFirstUse?: true;
  /** Whether the unit runs the service now. */
  active: boolean;
  pid?: number;
}

/** The service manager of an operating system. Every method throws `ERR_IO` and the errors of `run`. */
export interface ServiceManager {
  /** Writes the unit and enables it. `start` starts it at once. */
  install(content: UnitContent, how: { start: boolean }): Promise<void>;
  /** Stops and removes the unit, if it is ours. Returns whether there was one. */
  uninstall(): Promise<boolean>;
  state(): Promise<UnitState>;
}

export interface Base {
  run: typeof run;
  /** Name of the unit: `rdctl`, with a suffix for a home of its own. */
  name: string;
}

export interface LaunchdInput extends Base {
  /** Directory of the property lists. */
  directory: string;
  /** Domain of the job: `gui/501`, or `system`. */
  domain: string;
}

/** launchd, by `launchctl`. */
export function launchd({ run: execute, name, directory, domain }: LaunchdInput): ServiceManager {
  const label = `io.rdctl.service${name === 'rdctl' ? '' : `.${name}`}`;
  const file = join(directory, `${label}.plist`);
  const target = `${domain}/${label}`;
  /** Fails for a job that is not loaded, which is accepted. */
  const unload = () => execute(['launchctl', 'bootout', target], { accept: [0, 3, 5, 36, 113] });
  return {
    async install(content, { start }) {
      await replaceOurs(file, launchdJob(label, content));
      await unload();
      // A job is loaded at the next login anyway, and loading it starts it.
      if (start) await execute(['launchctl', 'bootstrap', domain, file]);
    },
    async uninstall() {
      if (!(await isOurs(file))) return false;
      await unload();
      await removeOurs(file);
      return true;
    },
    async state() {
      const installed = await isOurs(file);
      const { exitCode, stdout } = await execute(['launchctl', 'print', target], { accept: [0, 3, 64, 113] });
      const pid = Number(/^\s*pid = (\d+)$/m.exec(exitCode === 0 ? stdout : '')?.[1] ?? 0);
      return { ...ownUnit(file, installed), active: pid > 0, ...(pid > 0 ? { pid } : {}) };
    },
  };
}

export interface TaskInput extends Base {
  /** `DOMAIN\name` of the user at whose login the task starts. */
  user: string;
  /** Path of the definition while it is registered. */
  draft: string;
}

/** The Windows Task Scheduler, by `schtasks.exe`. */
export function taskScheduler({ run: execute, name, user, draft }: TaskInput): ServiceManager {
  const query = async () => {
    const { exitCode, stdout } = await execute(['schtasks.exe', '/Query', '/TN', name, '/XML'], { accept: [0, 1] });
    return exitCode === 0 ? stdout : undefined;
  };
  return {
    async install(content, { start }) {
      const there = await query();
      if (there !== undefined && !there.includes(UNIT_MARK)) throw foreignUnit(`the task ${name}`);
      // The scheduler reads UTF-16 with a byte order mark.
      await writeFileAtomic(draft, Buffer.from(`\uFEFF${windowsTask(content, user)}`, 'utf16le'));
      try {
        await execute(['schtasks.exe', '/Create', '/TN', name, '/XML', draft, '/F']);
      } finally {
        await rm(draft, { force: true });
      }
      if (start) await execute(['schtasks.exe', '/Run', '/TN', name]);
    },
    async uninstall() {
      if (!(await query())?.includes(UNIT_MARK)) return false;
      await execute(['schtasks.exe', '/End', '/TN', name], { accept: [0, 1] });
      await execute(['schtasks.exe', '/Delete', '/TN', name, '/F']);
      return true;
    },
    async state() {
      const installed = (await query())?.includes(UNIT_MARK) ?? false;
      const { stdout } = await execute(['schtasks.exe', '/Query', '/TN', name, '/FO', 'CSV', '/NH'], {
        accept: [0, 1],
      });
      return { ...ownUnit(name, installed), active: installed && /"Running"\s*$/m.test(stdout) };
    },
  };
}

/** Returns the state where an installed unit is always enabled, and no package brings one. */
function ownUnit(unit: string, installed: boolean): Omit<UnitState, 'active'> {
  return { unit, ...(installed ? { from: 'install' } : {}), installed, enabled: installed };
}
