import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DRIVERS } from '../../src/drivers/index.ts';
import { DRIVER_NAMES } from '../../src/product.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROFILE = JSON.stringify({ version: 19, images: { showAll: false } });

describe('before anything is created', () => {
  const nothing = (home: string) => expect(existsSync(home)).toBe(false);

  test.each([
    ['start', '--driver', 'nope'],
    ['serve', '--driver=nope'],
    ['apply', '-f', '-', '--driver', 'nope'],
    ['plan', '-f', '-', '--driver', 'nope'],
  ])('%s refuses an unknown driver', async (...argv) => {
    const home = join(temporaryDirectory(), 'home');
    const { exit, err } = await rdctl(argv, { env: { RDCTL_HOME: home }, stdin: PROFILE });
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: there is no driver "nope"\nAvailable drivers: simulated, qemu, host\.\n/);
    nothing(home);
  });

  test('the allowed driver names are those that exist', () => {
    expect(DRIVERS.map(({ name }) => name).sort()).toEqual([...DRIVER_NAMES].sort());
  });

  test.each(['70000', '-1', '65536'])('the port %s is refused with the valid range', async (port) => {
    const home = join(temporaryDirectory(), 'home');
    for (const argv of [
      ['start', `--port=${port}`],
      ['serve', '--port', port],
      ['--port', port, 'list-settings'],
    ]) {
      const { exit, out, err } = await rdctl(argv, { env: { RDCTL_HOME: home } });
      expect({ exit, out }).toEqual({ exit: 1, out: '' });
      expect(err).toMatch(/^Error: invalid argument "-?\d+" for "--port" flag: must be a port from 1 to 65535\nUsage:/);
    }
    nothing(home);
  });

  test('a home that cannot be created is reported with what is in the way', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const homes: [string, RegExp][] = [[join(file, 'home'), /could not create the directory \S+: \S+file is a file/]];
    if (process.platform === 'linux') {
      homes.push(['/proc/rdctl/home', /could not create the directory \S+: \/proc takes no new directories/]);
    }
    for (const [home, says] of homes) {
      for (const argv of [['start'], ['serve'], ['apply', '-f', '-']]) {
        const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated' };
        const { exit, err } = await rdctl(argv, { env, stdin: PROFILE });
        expect(exit).toBe(1);
        expect(err).toMatch(says);
        expect(err).toContain('RDCTL_HOME');
        expect(err).not.toContain('defect');
      }
    }
  });

  test.each([
    ['apply', '-f', '-'],
    ['apply', '-f', '-', '--skip-locked'],
    ['up', '-'],
  ])('%s %s %s refuses what the driver of the next service does not support, and starts none', async (...argv) => {
    const home = join(temporaryDirectory(), 'home');
    const factory = DRIVERS.find(({ name }) => name === 'host');
    if (!factory) throw new Error('there is a host driver');
    const text = 'apiVersion: rdctl/v1\nkind: Profile\nsettings:\n  version: 19\n  virtualMachine: { memoryInGB: 6 }\n';
    const stage = {
      env: { RDCTL_HOME: home },
      stdin: `${text}state: started\n`,
      chooseDriver: async () => ({ factory }),
    };
    const refused = await rdctl(argv, stage as never);
    expect(refused).toMatchObject({ exit: 3, out: '' });
    expect(refused.err).toMatch(
      /^Error: A change cannot be made, so nothing was changed\.\n<stdin>:5:\d+: "virtualMachine\./,
    );
    expect(existsSync(join(home, 'state', 'state.json'))).toBe(false);
  });

  test('a plan for another home or driver is refused, and nothing is started or recorded', async () => {
    const { env, home } = await startService();
    const plan = join(temporaryDirectory(), 'plan.json');
    expect((await rdctl(['plan', '-f', '-', '--out-file', plan], { env, stdin: PROFILE })).exit).toBe(0);
    const other = join(temporaryDirectory(), 'home');
    const refused = await rdctl(['apply', plan], { env: { RDCTL_HOME: other } });
    expect(refused).toMatchObject({ exit: 3, out: '' });
    expect(refused.err).toMatch(
      new RegExp(`^Error: The plan was made for rdctl at ${home} with driver simulated, but this is rdctl at ${other}`),
    );
    nothing(other);
  });

  test('a plan is read from a file only, not from standard input', async () => {
    const { env, client } = await startService();
    const planned = await rdctl(['plan', '-f', '-', '-o', 'json'], { env, stdin: PROFILE });
    const before = await client.status();
    for (const argv of [
      ['apply', '-'],
      ['apply', '-f', '-'],
    ]) {
      const { exit, err } = await rdctl(argv, { env, cwd: temporaryDirectory(), stdin: planned.out });
      expect([argv, exit === 0, err.includes('Sent')]).toEqual([argv, false, false]);
    }
    expect((await client.status()).generation).toBe(before.generation);
  });
});
