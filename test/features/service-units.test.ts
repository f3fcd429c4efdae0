import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'plist';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { installedText, unitText } from '../../cli/views/service-unit.ts';
import { RdError } from '../../src/errors.ts';
import { launchd, taskScheduler, type UnitState } from '../../src/features/service-units/manager.ts';
import { systemd } from '../../src/features/service-units/systemd.ts';
import { launchdJob, systemdService, systemdSocket, windowsTask } from '../../src/features/service-units/unit-files.ts';
import type { RunResult } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const CONTENT = { command: ['/usr/bin/rdctl', 'serve'], environment: { RDCTL_HOME: '/srv/a b' } };

/** A program that answers as told, and is recorded. */
function scripted(answer: (words: readonly string[]) => Partial<RunResult> | Error = () => ({})) {
  const calls: string[] = [];
  const run = async (argv: readonly string[]): Promise<RunResult> => {
    calls.push(argv.join(' '));
    const result = answer(argv);
    if (result instanceof Error) throw result;
    return { exitCode: 0, stdout: '', stderr: '', ...result };
  };
  return { run, calls };
}

describe('unit files', () => {
  test('of systemd: words and variables are quoted, and nothing in them is expanded', () => {
    const text = systemdService({ command: ['/a b/$x', '50%"q"\\'], environment: { RDCTL_HOME: '/h/%i $y' } });
    expect(text).toContain('\nExecStart="/a b/$$x" "50%%\\"q\\"\\\\"\n');
    expect(text).toContain('\nEnvironment="RDCTL_HOME=/h/%%i $y"\n');
    expect(text).toContain('\nKillMode=process\n');
    expect(systemdSocket('/run/%u/x.sock')).toContain('\nListenStream=/run/%%u/x.sock\n');
  });

  test('a line break cannot add a line to a unit', () => {
    for (const bad of ['a\nExecStart=/bin/x', 'a\r', 'a\0']) {
      expect(() => systemdService({ command: [bad], environment: {} })).toThrow(RdError);
      expect(() => systemdService({ command: ['a'], environment: { A: bad } })).toThrow(RdError);
      expect(() => systemdSocket(bad)).toThrow(RdError);
    }
  });

  test('of launchd: any words come back from the property list', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme-ascii', minLength: 1 }), { minLength: 1 }), (command) => {
        expect(parse(launchdJob('io.rdctl.service', { command, environment: { A: 'b' } }))).toMatchObject({
          Label: 'io.rdctl.service',
          ProgramArguments: command,
          EnvironmentVariables: { A: 'b' },
          KeepAlive: { SuccessfulExit: false },
        });
      }),
    );
  });

  test('of Windows: variables are set by cmd.exe, and what it would expand is refused', () => {
    expect(windowsTask({ command: ['C:\\a b\\rdctl.exe', 'serve'], environment: {} }, 'PC\\A&B')).toMatch(
      /<UserId>PC\\A&amp;B<\/UserId>[\s\S]*<Command>C:\\a b\\rdctl\.exe<\/Command><Arguments>&quot;serve&quot;<\/Arguments>/,
    );
    const text = windowsTask({ command: ['C:\\r.exe', 'serve'], environment: { RDCTL_HOME: 'D:\\h' } }, 'u');
    expect(text).toContain(
      '<Command>cmd.exe</Command><Arguments>/d /s /c &quot;set &quot;RDCTL_HOME=D:\\h&quot; &amp;&amp; &quot;C:\\r.exe&quot; &quot;serve&quot;&quot;</Arguments>',
    );
    for (const word of ['a"b', '%PATH%', 'a\nb']) {
      expect(() => windowsTask({ command: [word], environment: {} }, 'u')).toThrow(RdError);
      expect(() => windowsTask({ command: ['a'], environment: { A: word } }, 'u')).toThrow(RdError);
    }
  });
});

describe('systemd', () => {
  const stage = (answer?: Parameters<typeof scripted>[0], socket?: string) => {
    const root = temporaryDirectory();
    const [directory, packages] = [join(root, 'user'), join(root, 'packages')];
    mkdirSync(packages);
    const { run, calls } = scripted(answer);
    const manager = systemd({ run, name: 'rdctl', directory, packages, user: true, ...(socket ? { socket } : {}) });
    /** The same directories without a socket, or with one. */
    const as = (other?: string) =>
      systemd({ run, name: 'rdctl', directory, packages, user: true, ...(other ? { socket: other } : {}) });
    return { directory, packaged: join(packages, 'rdctl.service'), manager, as, calls };
  };
  /** What systemd answers for a unit in a file. */
  const shown = (file: string, more = 'UnitFileState=enabled\nActiveState=active\nMainPID=42\n') =>
    scripted((words) =>
      words.includes('show') && words.includes('rdctl.service') ? { stdout: `FragmentPath=${file}\n${more}` } : {},
    ).run;

  test('installs, twice, and uninstalls, twice', async () => {
    const { directory, manager, calls } = stage();
    for (const _ of [1, 2]) await manager.install(CONTENT, { start: true });
    expect(readdirSync(directory)).toEqual(['rdctl.service']);
    expect(calls.slice(0, 3)).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user daemon-reload',
      'systemctl --user enable --now rdctl.service',
    ]);
    expect(await manager.uninstall()).toBe(true);
    expect(calls).toContain('systemctl --user disable --now rdctl.service');
    expect(readdirSync(directory)).toEqual([]);
    expect(await manager.uninstall()).toBe(false);
  });

  test('a unit among dotfiles stays a link, and one that leads out of the home directory is refused', async () => {
    const { directory, manager } = stage();
    await manager.install(CONTENT, { start: false });
    const [unit, home] = [join(directory, 'rdctl.service'), temporaryDirectory()];
    const target = join(home, 'rdctl.service');
    renameSync(unit, target);
    symlinkSync(target, unit);
    const text = readFileSync(target, 'utf8');
    const other = { ...CONTENT, command: ['/opt/rdctl', 'serve'] };
    await expect(manager.install(other, { start: false })).rejects.toThrow('outside of the home directory');
    expect(readFileSync(target, 'utf8')).toBe(text);
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());
    await manager.install(other, { start: false });
    expect(lstatSync(unit).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toContain('/opt/rdctl');
  });

  test('a unit that failed is not listed as failed after its removal, and one that did not is no error', async () => {
    const { manager, calls } = stage((words) =>
      words.includes('reset-failed') ? new RdError('ERR_DRIVER_FAILED', 'systemctl failed') : {},
    );
    await manager.install(CONTENT, { start: true });
    expect(await manager.uninstall()).toBe(true);
    expect(calls.at(-1)).toBe('systemctl --user reset-failed rdctl.service');
  });

  test('a socket unit comes and goes with the wish for it', async () => {
    const { directory, manager, as, calls } = stage(undefined, '/run/rdctl/a.sock');
    await manager.install(CONTENT, { start: true });
    expect(readdirSync(directory)).toEqual(['rdctl.service', 'rdctl.socket']);
    // A unit of a package or an earlier installation may be enabled.
    expect(calls).toContain('systemctl --user disable rdctl.service');
    expect(calls.at(-1)).toBe('systemctl --user enable --now rdctl.socket');
    expect(readFileSync(join(directory, 'rdctl.socket'), 'utf8')).toContain('\nRemoveOnStop=yes\n');
    calls.length = 0;
    await as().install(CONTENT, { start: false });
    expect(readdirSync(directory)).toEqual(['rdctl.service']);
    expect(calls).toContain('systemctl --user disable --now rdctl.socket');
    expect(calls.at(-1)).toBe('systemctl --user enable rdctl.service');
  });

  test('a socket does not start beside its service, which systemd refuses', async () => {
    const active = (words: readonly string[]) => (words.includes('show') ? { stdout: 'ActiveState=active\n' } : {});
    const { manager, calls } = stage(active, '/run/rdctl/a.sock');
    await manager.install(CONTENT, { start: false });
    expect(calls.at(-1)).toBe('systemctl --user enable rdctl.socket');
  });

  test('a unit of somebody else is neither replaced nor removed', async () => {
    const { directory, manager, calls } = stage();
    mkdirSync(directory);
    writeFileSync(join(directory, 'rdctl.service'), '[Service]\n');
    await expect(manager.install(CONTENT, { start: true })).rejects.toThrow(/rdctl did not create it/);
    expect(await manager.uninstall()).toBe(false);
    expect(readFileSync(join(directory, 'rdctl.service'), 'utf8')).toBe('[Service]\n');
    expect(calls.filter((call) => /enable|disable/.test(call))).toEqual([]);
  });

  test('without a manager that answers, nothing is written, and the error says why', async () => {
    const failure = new RdError('ERR_DRIVER_FAILED', 'systemctl failed', { details: ['Failed to connect to bus'] });
    const { directory, manager } = stage(() => failure);
    const error: unknown = await manager.install(CONTENT, { start: true }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ERR_IO', details: ['Failed to connect to bus'] });
    expect(() => readdirSync(directory)).toThrow(/ENOENT/);
  });

  test('state: the unit that is in force, whose it is, and what it does', async () => {
    const { directory, packaged, manager } = stage();
    const unit = join(directory, 'rdctl.service');
    const seen = (file: string, more?: string) =>
      systemd({
        ...{ run: shown(file, more), name: 'rdctl', directory, user: true },
        packages: dirname(packaged),
      }).state();
    const runs = { enabled: true, active: true, pid: 42 };
    expect(await seen('', 'MainPID=0\n')).toEqual({ unit, installed: false, enabled: false, active: false });
    writeFileSync(packaged, `# X-Rdctl-Managed\n`);
    expect(await seen(packaged)).toEqual({ unit: packaged, from: 'package', installed: false, ...runs });
    expect(await seen(packaged, 'UnitFileState=disabled\nActiveState=inactive\nMainPID=0\n')).toEqual({
      ...{ unit: packaged, from: 'package', installed: false },
      ...{ enabled: false, active: false },
    });
    expect(await seen('/etc/systemd/user/rdctl.service')).toEqual({
      ...{ unit: '/etc/systemd/user/rdctl.service', from: 'other', installed: false, packaged },
      ...runs,
    });
    await manager.install(CONTENT, { start: true });
    expect(await seen(unit)).toEqual({ unit, from: 'install', installed: true, packaged, ...runs });
  });

  test('state: without a manager that answers, nothing is installed, unless there is a unit', async () => {
    const { directory, packaged, manager } = stage(() => new RdError('ERR_DRIVER_FAILED', 'systemctl failed'));
    expect(await manager.state()).toMatchObject({ unit: join(directory, 'rdctl.service'), installed: false });
    writeFileSync(packaged, '');
    await expect(manager.state()).rejects.toMatchObject({ code: 'ERR_IO' });
  });
});

describe('what service status and install say', () => {
  const state = (more: Partial<UnitState>): UnitState => ({
    ...{ unit: '/u/rdctl.service', installed: false, enabled: false, active: false },
    ...more,
  });

  test('of the unit in force, and how to enable it', () => {
    const text = (more: Partial<UnitState>, system = false) => unitText(state(more), { system, name: 'rdctl' });
    expect(text({})).toBe('Not installed. `rdctl service install` starts it at login.\n');
    expect(text({}, true)).toBe('Not installed. `sudo rdctl service install --system` starts it at boot.\n');
    expect(text({ from: 'package' })).toBe(
      '/u/rdctl.service (of a package)\nNot enabled; not running.\n`systemctl --user enable --now rdctl` starts it at login.\n',
    );
    expect(text({ from: 'package', enabled: true, active: true, pid: 7 }, true)).toBe(
      '/u/rdctl.service (of a package)\nEnabled; running (pid 7).\n',
    );
    expect(text({ from: 'install', enabled: true, onFirstUse: true, packaged: '/p/rdctl.service' })).toBe(
      '/u/rdctl.service\nEnabled on first use; not running.\nIt comes before /p/rdctl.service, which is not used.\n',
    );
    expect(text({ from: 'other' }, true)).toContain('(not created by rdctl)\nNot enabled; not running');
  });

  test('of an installation beside a packaged unit and a running service', () => {
    const text = (more: Partial<UnitState>, running?: number) =>
      installedText(state({ from: 'install', installed: true, ...more }), { system: false, running });
    expect(text({})).toBe('Installed /u/rdctl.service; the service starts at login and after a crash.\n');
    expect(text({ packaged: '/p' })).toContain('It comes before /p, which is no longer used.\n');
    expect(text({ pid: 7 }, 7)).toContain('The service keeps running; what was changed counts from its next start.\n');
    expect(text({}, 7)).toContain('The running service is not part of it. To change that: rdctl shutdown, and install');
    expect(text({ onFirstUse: true }, 7)).toContain('after `rdctl shutdown` it starts on first use');
    expect(text({ onFirstUse: true, pid: 7 }, 7)).toContain(
      'before the next login or boot: rdctl shutdown, and install',
    );
  });
});

test('launchd: loads the job it wrote, and knows its process', async () => {
  const directory = temporaryDirectory();
  const { run, calls } = scripted((words) =>
    words.includes('print') ? { stdout: '\tstate = running\n\tpid = 7\n' } : {},
  );
  const manager = launchd({ run, name: 'rdctl-1', directory, domain: 'gui/501' });
  await manager.install(CONTENT, { start: true });
  const [file = ''] = readdirSync(directory);
  expect(calls.at(-1)).toBe(`launchctl bootstrap gui/501 ${join(directory, file)}`);
  expect(await manager.state()).toMatchObject({ installed: true, enabled: true, active: true, pid: 7 });
  expect(await manager.uninstall()).toBe(true);
  expect(calls).toContain('launchctl bootout gui/501/io.rdctl.service.rdctl-1');
  expect(readdirSync(directory)).toEqual([]);
});

test('the task scheduler: registers a definition in UTF-16, and leaves a foreign task alone', async () => {
  const draft = join(temporaryDirectory(), 'task.xml');
  let registered = '';
  const { run, calls } = scripted((words) => {
    if (words.includes('/Create')) registered = readFileSync(draft).toString('utf16le');
    if (words.includes('/CSV')) return { stdout: '"rdctl","N/A","Running"\r\n' };
    return words.includes('/XML') && words.includes('/Query')
      ? { stdout: registered, exitCode: registered === '' ? 1 : 0 }
      : {};
  });
  const manager = taskScheduler({ run, name: 'rdctl', user: 'PC\\u', draft });
  await manager.install(CONTENT, { start: true });
  expect(registered).toMatch(/^\uFEFF<\?xml version="1\.0" encoding="UTF-16"\?>/);
  expect(calls.at(-1)).toBe('schtasks.exe /Run /TN rdctl');
  expect(await manager.state()).toMatchObject({ installed: true });
  expect(await manager.uninstall()).toBe(true);
  registered = '<Task>of somebody else</Task>';
  await expect(manager.install(CONTENT, { start: false })).rejects.toThrow(/did not create it/);
  expect(await manager.uninstall()).toBe(false);
});
