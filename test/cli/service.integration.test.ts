import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A `systemctl` that notes its arguments and shows an active unit. */
function stage() {
  const [home, programs] = [temporaryDirectory(), temporaryDirectory()];
  const calls = join(programs, 'calls');
  writeFileSync(calls, '');
  writeFileSync(
    join(programs, 'systemctl'),
    `#!/bin/sh\necho "$*" >> ${calls}\n[ "$2" != show ] || printf 'UnitFileState=enabled\\nActiveState=active\\nMainPID=7\\n'\n`,
    { mode: 0o755 },
  );
  const env = { HOME: home, PATH: `${programs}:/usr/bin:/bin`, RDCTL_HOME: join(home, 'h'), RDCTL_PASSWORD: 'secret' };
  mkdirSync(env.RDCTL_HOME);
  const units = join(home, '.config', 'systemd', 'user');
  return {
    units,
    calls: () => readFileSync(calls, 'utf8'),
    rdctl: (...argv: string[]) => rdctl(['service', ...argv], { env }),
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
      err: expect.stringMatching(/starts at login, and again after a crash/),
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
    ...{ installed: true, enabled: true, active: true, pid: 7 },
  });
  expect(await service('uninstall')).toMatchObject({ exit: 0, err: 'Removed.\n' });
  expect(readdirSync(units)).toEqual([]);
  expect(await service('uninstall')).toMatchObject({ exit: 0, err: 'There was nothing to remove.\n' });
});

test('--on-first-use enables the socket in place of the service', async () => {
  const { units, calls, rdctl: service } = stage();
  expect((await service('install', '--on-first-use')).err).toContain('when it is first used');
  expect(readdirSync(units).map((name) => name.replace(/.*\./, ''))).toEqual(['service', 'socket']);
  expect(calls()).toMatch(/--user enable --now rdctl-[0-9a-f]{8}\.socket\n/);
});
