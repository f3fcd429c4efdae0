import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { run } from '../../cli/run.ts';
import { fakeIo } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A `systemctl` that notes its arguments and shows an active unit. */
function stage({ active = 'active', socket = '', other = 'disabled' } = {}) {
  const [home, programs] = [temporaryDirectory(), temporaryDirectory()];
  const program = join(programs, 'rdctl');
  writeFileSync(program, '', { mode: 0o755 });
  const calls = join(programs, 'calls');
  writeFileSync(calls, '');
  writeFileSync(
    join(programs, 'systemctl'),
    `#!/bin/sh
echo "$*" >> ${calls}
case "$*" in
"--user show "*.service) printf 'UnitFileState=enabled\\nActiveState=%s\\nMainPID=7\\n' "$ACTIVE" ;;
"show "*.service) printf 'FragmentPath=/etc/systemd/system/rdctl.service\\nUnitFileState=%s\\n' "$OTHER" ;;
*.socket) [ "$2" != show ] || printf 'UnitFileState=%s\\n' "$SOCKET" ;;
esac
`,
    { mode: 0o755 },
  );
  const env = {
    HOME: home,
    PATH: `${programs}:/usr/bin:/bin`,
    ACTIVE: active,
    SOCKET: socket,
    OTHER: other,
    RDCTL_HOME: join(home, 'h'),
    RDCTL_PASSWORD: 'secret',
  };
  mkdirSync(env.RDCTL_HOME);
  const units = join(home, '.config', 'systemd', 'user');
  return {
    units,
    program,
    calls: () => readFileSync(calls, 'utf8'),
    async rdctl(...argv: string[]) {
      const io = { ...fakeIo({ env }), self: [program] };
      const exit = await run(['service', ...argv], io, COMMANDS);
      return { exit, ...io.text };
    },
  };
}

test('install writes a unit without secrets, twice, and uninstall removes it, twice', async () => {
  const { units, calls, rdctl: service } = stage();
  expect(await service('status')).toMatchObject({ exit: 2, out: expect.stringMatching(/^Not installed\./) });
  for (const _ of [1, 2]) {
    const installed = await service('install', '--driver', 'simulated');
    expect(installed).toMatchObject({
      exit: 0,
      out: '',
      err: expect.stringMatching(/starts at login and after a crash/),
    });
  }
  const [name = '', ...more] = readdirSync(units);
  expect([name, more]).toEqual([expect.stringMatching(/^rdctl-[0-9a-f]{8}\.service$/), []]);
  const unit = readFileSync(join(units, name), 'utf8');
  expect(unit).toMatch(/^ExecStart=.* "serve" "--driver" "simulated"$/m);
  expect(unit).toMatch(/^Environment="RDCTL_HOME=/m);
  expect(unit).not.toContain('secret');
  expect(calls()).toContain(`--user enable --now ${name}\n`);
  expect(JSON.parse((await service('status', '-o', 'json')).out)).toEqual({
    ...{ kind: 'ServiceUnit', formatVersion: 1, unit: join(units, name) },
    ...{ from: 'install', installed: true, enabled: true, active: true, pid: 7 },
  });
  expect(await service('uninstall')).toMatchObject({ exit: 0, err: 'Removed.\n' });
  expect(readdirSync(units)).toEqual([]);
  expect(await service('uninstall')).toMatchObject({ exit: 0, err: 'There was nothing to remove.\n' });
});

test('--on-first-use enables the socket in place of the service', async () => {
  const { units, calls, rdctl: service } = stage({ active: 'inactive', socket: 'enabled' });
  expect((await service('install', '--on-first-use')).err).toContain('when first used');
  expect(
    readdirSync(units)
      .map((name) => name.replace(/.*\./, ''))
      .sort(),
  ).toEqual(['service', 'socket']);
  expect(calls()).toMatch(/--user enable --now rdctl-[0-9a-f]{8}\.socket\n/);
});

test('a program that others can change becomes no unit, and the service manager is not asked', async () => {
  const { units, program, calls, rdctl: service } = stage();
  chmodSync(program, 0o777);
  const { exit, err } = await service('install');
  expect(err).toContain(`${program} can be written by other users`);
  expect(err).toContain(`chmod go-w ${program}`);
  expect(exit).toBe(3);
  expect(calls()).toBe('');
  expect(() => readdirSync(units)).toThrow('ENOENT');
});

test.skipIf(process.getuid?.() !== 0)('a unit for the whole computer is refused likewise', async () => {
  const { program, rdctl: service } = stage();
  // If it is asked after all, nothing is written.
  writeFileSync(join(program, '..', 'systemctl'), '#!/bin/sh\nexit 1\n');
  chmodSync(program, 0o777);
  const { exit, err } = await service('install', '--system', '--driver', 'simulated');
  expect(err).toContain('may run something else as root');
  expect(exit).toBe(3);
});

test.skipIf(process.getuid?.() !== 0)(
  'root has two managers and one home: only one of them starts the service',
  async () => {
    const { units, rdctl: service } = stage({ other: 'enabled' });
    expect(await service('install')).toMatchObject({
      exit: 1,
      err: expect.stringMatching(
        /^Error: \/etc\/systemd\/system\/rdctl\.service starts this service already; nothing was changed\n.*: systemctl disable --now rdctl-[0-9a-f]{8}\n$/,
      ),
    });
    expect(() => readdirSync(units)).toThrow('ENOENT');
  },
);
