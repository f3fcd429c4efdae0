import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../os/atomic-file.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import type { run } from '../../os/run.ts';
import { launchdJob, systemdService, systemdSocket, UNIT_MARK, type UnitContent, windowsTask } from './unit-files.ts';

/** What a service manager knows of the unit of this home. */
export interface UnitState {
  /** The file or the name of the task. */
  unit: string;
  installed: boolean;
  /** It starts the service at login, or at boot. */
  enabled: boolean;
  /** It runs the service now. */
  active: boolean;
  pid?: number;
}

/** The service manager of an operating system. Every method throws `ERR_IO` and the errors of `run`. */
export interface ServiceManager {
  /** Writes the unit and enables it. `start`: also starts it now. */
  install(content: UnitContent, how: { start: boolean }): Promise<void>;
  /** Stops and removes the unit, if it is ours. Returns whether there was one. */
  uninstall(): Promise<boolean>;
  state(): Promise<UnitState>;
}

interface Base {
  run: typeof run;
  /** `rdctl`, with a suffix for a home of its own. */
  name: string;
}

export interface SystemdInput extends Base {
  /** Directory of the unit files. */
  directory: string;
  /** The manager of the user, not of the system. */
  user: boolean;
  /** Path of a socket whose first connection starts the service; absent: the service starts at login or boot. */
  socket?: string;
}

/** systemd, by `systemctl`. */
export function systemd({ run: execute, name, directory, user, socket }: SystemdInput): ServiceManager {
  const service = join(directory, `${name}.service`);
  const socketUnit = join(directory, `${name}.socket`);
  const systemctl = (...words: string[]) =>
    execute(['systemctl', ...(user ? ['--user'] : []), ...words]).catch((cause: unknown) => {
      const details = cause instanceof RdError ? cause.details : [];
      throw new RdError('ERR_IO', `systemctl ${words.join(' ')} failed`, {
        ...{ cause, details },
        advice: `Check that systemd runs here${user ? ' for this user: systemctl --user status' : ': systemctl status'}.`,
      });
    });

  return {
    async install(content, { start }) {
      // Without a manager that answers, nothing is written.
      await systemctl('daemon-reload');
      // An earlier installation may have enabled the other one.
      const other = socket === undefined ? socketUnit : service;
      if (await isOurs(other)) await systemctl('disable', other.slice(directory.length + 1));
      await replaceOurs(service, systemdService(content));
      if (socket === undefined) await removeOurs(socketUnit);
      else await replaceOurs(socketUnit, systemdSocket(socket));
      await systemctl('daemon-reload');
      const enabled = socket === undefined ? `${name}.service` : `${name}.socket`;
      await systemctl('enable', ...(start ? ['--now'] : []), enabled);
    },
    async uninstall() {
      const units: string[] = [];
      for (const path of [socketUnit, service]) if (await isOurs(path)) units.push(path);
      if (units.length === 0) return false;
      await systemctl('disable', '--now', ...units.map((path) => path.slice(directory.length + 1)));
      for (const path of units) await removeOurs(path);
      await systemctl('daemon-reload');
      return true;
    },
    async state() {
      const properties = ['UnitFileState', 'ActiveState', 'MainPID'].map((property) => `--property=${property}`);
      const show = async (unit: string) => propertiesIn((await systemctl('show', ...properties, unit)).stdout);
      const installed = await isOurs(service);
      if (!installed) return { unit: service, installed, enabled: false, active: false };
      const [of, ofSocket] = [await show(`${name}.service`), await show(`${name}.socket`)];
      const pid = Number(of.get('MainPID') ?? 0);
      return {
        ...{ unit: service, installed },
        enabled: [of, ofSocket].some((each) => each.get('UnitFileState') === 'enabled'),
        active: of.get('ActiveState') === 'active',
        ...(pid > 0 ? { pid } : {}),
      };
    },
  };
}

function propertiesIn(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\n').map((line) => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

export interface LaunchdInput extends Base {
  /** Directory of the property lists. */
  directory: string;
  /** `gui/501`, or `system`. */
  domain: string;
}

/** launchd, by `launchctl`. */
export function launchd({ run: execute, name, directory, domain }: LaunchdInput): ServiceManager {
  const label = `io.rdctl.service${name === 'rdctl' ? '' : `.${name}`}`;
  const file = join(directory, `${label}.plist`);
  const target = `${domain}/${label}`;
  /** Fails for a job that is not loaded, which is what is wanted. */
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
      return { unit: file, installed, enabled: installed, active: pid > 0, ...(pid > 0 ? { pid } : {}) };
    },
  };
}

export interface TaskInput extends Base {
  /** `DOMAIN\name` of the user at whose login it starts. */
  user: string;
  /** A place for the definition while it is registered. */
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
      return { unit: name, installed, enabled: installed, active: installed && /"Running"\s*$/m.test(stdout) };
    },
  };
}

async function isOurs(path: string): Promise<boolean> {
  return ((await readIfThere(path, { follow: true })) ?? '').includes(UNIT_MARK);
}

async function replaceOurs(path: string, text: string): Promise<void> {
  const there = await readIfThere(path, { follow: true });
  if (there !== undefined && !there.includes(UNIT_MARK)) throw foreignUnit(path);
  await writeFileAtomic(path, text, { mode: 0o644 });
}

async function removeOurs(path: string): Promise<void> {
  if (!(await isOurs(path))) return;
  await rm(path).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  });
}

function foreignUnit(what: string): RdError {
  return new RdError('ERR_IO', `${what} exists, and rdctl did not create it; nothing was changed`, {
    advice: 'Review it, and remove it if it is not needed.',
  });
}
