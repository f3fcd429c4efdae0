import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Probe } from '../../src/drivers/driver.ts';
import { chooseDriver, type DriverChoice, host, qemu } from '../../src/drivers/index.ts';
import { simulated } from '../../src/drivers/machines/simulated/index.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';

const tool = builtTool();
/** The choice on a computer where only the simulated driver can run. */
const noEngine = (choice: DriverChoice) => {
  const probe = async (): Promise<Probe> => ({ usable: false, reason: 'no engine', fix: 'install one' });
  return chooseDriver({ ...choice, drivers: [simulated, { ...host, probe }, { ...qemu, probe, automatic: false }] });
};
const at = (home: string) => toolAt(tool.entry(), home);

describe('a plan without a running service', () => {
  const stdin =
    'apiVersion: rdctl/v1\nkind: Profile\nstate: started\nsettings: { version: 19, containerEngine: { name: containerd } }\n';

  test('predicts what apply then does', async () => {
    const home = temporaryDirectory();
    const program = at(home);
    const planned = JSON.parse((await program(['plan', '-f', '-', '-o', 'json', '--driver=simulated'], stdin)).out);
    const applied = JSON.parse((await program(['apply', '-f', '-', '-o', 'json', '--driver=simulated'], stdin)).out);
    const shape = ({ path, severity, before, after }: Record<string, unknown>) => ({ path, severity, before, after });
    expect(planned).toMatchObject({ basis: 'estimated', target: { driver: 'simulated', simulated: true } });
    expect(planned.changes.map(shape)).toEqual(applied.changes.map(shape));
    expect(planned.summary).toMatchObject({ restarts: 0, severity: 'live' });
    expect((await program(['shutdown'])).exit).toBe(0);

    const moby = stdin.replace('containerd', 'moby');
    const second = JSON.parse((await program(['plan', '-f', '-', '-o', 'json'], moby)).out);
    expect(await program(['plan', '-f', '-', '--driver', 'host'], moby)).toMatchObject({
      exit: 3,
      err: `Error: The driver here is simulated, not host.
Remove the simulation with \`rdctl reset --factory\`, or use another home: RDCTL_HOME=DIR rdctl … --driver host
`,
    });
    expect((await program(['apply', '-f', '-', '--driver', 'host'], moby)).exit).toBe(3);
    const carried = JSON.parse((await program(['apply', '-f', '-', '-o', 'json'], moby)).out);
    expect(second.changes.map(shape)).toEqual(carried.changes.map(shape));
    expect(second.changes.map(shape)).toContainEqual({
      path: 'state',
      severity: 'live',
      before: 'stopped',
      after: 'started',
    });
    expect((await program(['apply', '--previous'])).exit).toBe(0);
    expect(JSON.parse((await program(['status', '-o', 'json'])).out)).toMatchObject({
      power: 'started',
      engine: { name: 'containerd', state: 'running' },
    });
  });

  test('refuses what a service with the stored settings would refuse, at its line', async () => {
    const home = temporaryDirectory();
    mkdirSync(join(home, 'config'));
    const size = (diskSize: string) => `experimental: { virtualMachine: { diskSize: ${diskSize} } }`;
    const stored = '{"version":19,"experimental":{"virtualMachine":{"diskSize":"200GiB"}}}';
    writeFileSync(join(home, 'config', 'settings.json'), stored);
    const planned = (diskSize: string) =>
      rdctl(['plan', '-f', '-', '--driver', 'simulated'], {
        env: { RDCTL_HOME: home },
        stdin: `version: 19\n${size(diskSize)}\n`,
      });
    expect(await planned('150GiB')).toMatchObject({ exit: 3, out: '', err: expect.stringContaining('<stdin>:2:') });
    expect(await planned('250GiB')).toMatchObject({ exit: 0, out: expect.stringContaining('200GiB → 250GiB') });
  });

  test('a settings file of a newer release gets one message', async () => {
    const home = temporaryDirectory();
    const program = at(home);
    mkdirSync(join(home, 'config'));
    writeFileSync(join(home, 'config', 'settings.json'), '{"version":99}');
    const planned = await program(['plan', '-f', '-'], stdin);
    const applied = await program(['apply', '-f', '-', '--driver', 'simulated'], stdin);
    const sentence = /Error: .*settings\.json has settings version 99, but this release supports versions up to 19\n/;
    expect(planned).toMatchObject({ exit: 1, err: expect.stringMatching(sentence) });
    expect(applied).toMatchObject({ exit: 1, err: expect.stringMatching(sentence) });
  });

  test('names the driver that a first start would choose', async () => {
    const stage = { env: { RDCTL_HOME: temporaryDirectory() }, stdin };
    const { out } = await rdctl(['plan', '-f', '-'], {
      ...stage,
      chooseDriver: async () => ({ factory: { name: 'qemu' } }),
    });
    expect(out).toMatch(/^Driver: qemu$/m);
  });

  test('says what each driver lacks where none can run, and offers the simulation', async () => {
    const stage = { env: { RDCTL_HOME: temporaryDirectory(), PATH: '' }, stdin, chooseDriver: noEngine };
    const { exit, out } = await rdctl(['plan', '-f', '-'], stage);
    expect(exit).toBe(0);
    expect(out).toContain('Driver: not chosen yet\n');
    expect(out).toContain(`
warning: Nothing can be applied yet: no driver can run here.
warning: host: no engine; fix: install one
warning: Fix one of these, or add \`--driver simulated\` to try rdctl with a model that runs nothing.
`);
  });

  test('says why the requested driver cannot run', async () => {
    const env = { RDCTL_HOME: temporaryDirectory() };
    const lack = 'Nothing can be applied yet: the driver qemu cannot run here: no engine.';
    const stage = { env, stdin, chooseDriver: noEngine };
    const document = async (...more: string[]) =>
      JSON.parse((await rdctl(['plan', '-f', '-', '-o', 'json', ...more], stage)).out);
    expect(await document('--driver', 'qemu')).toMatchObject({
      target: { driver: 'qemu' },
      warnings: expect.arrayContaining([lack, 'Fix: install one']),
    });
    expect((await document('--driver', 'simulated')).warnings).not.toContain(lack);
  });
});
