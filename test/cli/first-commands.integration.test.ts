import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exampleNamed, exampleOffered } from '../../cli/arguments/example-files.ts';
import { RdError } from '../../src/errors.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('without a command: what can run; the status of what does', async () => {
  const fresh = await rdctl([], { env: { RDCTL_HOME: temporaryDirectory() } });
  expect(fresh).toMatchObject({ exit: 0, err: '', out: expect.stringMatching(/^Nothing has run here yet\./) });
  const { env } = await startService();
  const shown = await rdctl([], { env });
  expect(shown).toMatchObject({ exit: 0, err: '', out: (await rdctl(['status'], { env })).out });
});

test('up starts a stopped backend, and finds nothing to change the second time; a profile is applied, and started', async () => {
  const { env, client, home } = await startService({ power: 'stopped' });
  expect(await rdctl(['up'], { env })).toMatchObject({ exit: 0, out: expect.stringContaining('Converged') });
  expect(await rdctl(['up'], { env })).toMatchObject({ exit: 0, out: expect.stringMatching(/^Nothing to change\./) });
  const path = join(home, 'p.yaml');
  const profile = (state: string) =>
    writeFileSync(
      path,
      `apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19, images: { showAll: false } }\n${state}`,
    );
  profile('');
  await client.setBackendState('STOPPED');
  const planned = await rdctl(['up', path, '--dry-run'], { env });
  expect(planned).toMatchObject({ exit: 0, out: expect.stringContaining('state: stopped → started') });
  expect((await client.status()).power).toBe('stopped');
  expect((await rdctl(['up', path], { env })).exit).toBe(0);
  expect((await client.settings()).settings).toMatchObject({ images: { showAll: false } });
  expect((await client.status()).power).toBe('started');
  profile('state: stopped');
  expect(await rdctl(['up', path], { env })).toMatchObject({ exit: 1, err: expect.stringContaining('rdctl apply -f') });
  expect((await rdctl(['up', path, path], { env })).exit).toBe(1);
});

test('a profile is named with -f and without; an example by its name, unless a file has it', async () => {
  const { env, home } = await startService();
  const stage = { env, cwd: home };
  for (const command of ['plan', 'validate', 'diff', 'up', 'apply']) {
    const flags = command === 'up' || command === 'apply' ? ['--dry-run'] : [];
    const there = await rdctl([command, join(process.cwd(), 'examples', 'moby.yaml'), ...flags], stage);
    for (const name of ['moby', 'examples/moby.yaml']) {
      const { exit, out, err } = await rdctl([command, name, ...flags], stage);
      expect({ exit, out }, `${command} ${name}`).toEqual({ exit: there.exit, out: there.out });
      expect(err).toMatch(new RegExp(`^notice: ${name} is an example, read from /.*/examples/moby\\.yaml\n`));
    }
  }
  // A file of that name may be missing, and another one is not what was meant.
  expect(await rdctl(['plan', '-f', 'team/ci.yaml'], stage)).toMatchObject({
    exit: 1,
    out: '',
    err: 'Error: team/ci.yaml could not be read: no such file or directory\nThere is an example: -f examples/ci.yaml\n',
  });
  expect((await rdctl(['plan', 'no-example'], stage)).err).not.toContain('example:');
  writeFileSync(join(home, 'moby'), '{"version":19,"kubernetes":{"enabld":true}}');
  expect((await rdctl(['validate', 'moby'], stage)).out).toContain('moby:1:');
  const applied = await rdctl(['apply', 'examples/no-kubernetes.yaml'], stage);
  expect(applied).toMatchObject({ exit: 0, out: expect.stringContaining('Converged') });
  expect((await rdctl(['diff', 'examples/no-kubernetes.yaml'], stage)).exit).toBe(0);
});

test('without a file, an example of the installed package is read', () => {
  const prefix = temporaryDirectory();
  const examples = join(prefix, 'share/doc/rdctl/examples');
  mkdirSync(examples, { recursive: true });
  mkdirSync(join(prefix, 'bin'));
  writeFileSync(join(prefix, 'bin/rdctl'), '');
  writeFileSync(join(examples, 'moby.yaml'), '');
  const io = { cwd: prefix, self: [join(prefix, 'bin/rdctl')] };
  expect(exampleNamed('moby', io)).toBe(join(examples, 'moby.yaml'));
  expect(exampleNamed('../moby', io)).toBeUndefined();
  expect(exampleNamed('moby.yaml', io)).toBeUndefined();
  expect(exampleOffered('moby.yaml', io)).toBe('examples/moby.yaml');
});

test('up --or-simulate falls back where no engine can run, says so each time, and up alone never does', async () => {
  const env = {
    RDCTL_HOME: temporaryDirectory(),
    PATH: process.env.PATH,
    RDCTL_CONNECTIVITY_URL: 'http://127.0.0.1:9/',
  };
  const chooseDriver = async () => {
    throw new RdError('ERR_NO_DRIVER', 'no driver can run here');
  };
  const fresh = { env: { RDCTL_HOME: temporaryDirectory() } };
  const planned = (stage: object, ...more: string[]) =>
    rdctl(['up', 'examples/moby.yaml', '--dry-run', '-o', 'json', ...more], { ...fresh, ...stage });
  const driverOf = ({ out }: { out: string }) => JSON.parse(out).target.driver;
  // Where an engine can run, and where the user has chosen.
  const real = await planned({}, '--or-simulate');
  expect([driverOf(real), real.err]).toEqual(['host', expect.not.stringContaining('SIMULATED')]);
  expect(
    (await planned({ env: { ...fresh.env, RDCTL_DRIVER: 'host' }, chooseDriver }, '--or-simulate')).err,
  ).not.toContain('SIMULATED');
  expect(driverOf(await planned({ chooseDriver }))).not.toBe('simulated');
  expect(driverOf(await planned({ chooseDriver }, '--or-simulate'))).toBe('simulated');
  expect((await rdctl(['up', '--or-simulate', '--driver', 'host'], fresh)).err).toContain('mutually exclusive');

  try {
    const up = () => rdctl(['up', 'examples/moby.yaml', '--or-simulate'], { env, chooseDriver });
    const first = await up();
    expect(first).toMatchObject({ exit: 0, out: expect.stringContaining('Endpoint: simulated:moby') });
    const line = /^notice: SIMULATED, .*: .*(?:rdctl|apt-get) .*$/m;
    expect(first.err).toMatch(line);
    expect(await up()).toMatchObject({ exit: 0, err: expect.stringMatching(line) });
    expect((await rdctl(['down'], { env })).exit).toBe(0);
    expect(await rdctl([], { env })).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^No service is running\.\nStart it again: +rdctl up\n/),
    });
    expect(await up()).toMatchObject({ exit: 0, err: expect.stringMatching(line) });
  } finally {
    await rdctl(['down'], { env });
  }
});

test('apply --dry-run says what plan says, and sends nothing', async () => {
  const { env, client, home } = await startService();
  const path = join(home, 'p.json');
  writeFileSync(path, '{"version":19,"images":{"showAll":false}}');
  const { generation } = await client.status();
  expect(await rdctl(['apply', '--dry-run', '-f', path], { env })).toEqual(await rdctl(['plan', '-f', path], { env }));
  expect((await client.status()).generation).toBe(generation);
  for (const argv of [['--previous'], ['saved.plan']]) {
    expect(await rdctl(['apply', '--dry-run', ...argv], { env })).toMatchObject({
      exit: 1,
      err: expect.stringContaining('--dry-run takes a profile'),
    });
  }
});

test('doctor tells the drivers without a service, and status and checks with one', async () => {
  const { out, exit } = await rdctl(['doctor', '-o', 'json'], { env: { RDCTL_HOME: temporaryDirectory() } });
  const { drivers, ...rest } = JSON.parse(out);
  expect(rest).toEqual({ kind: 'Doctor', formatVersion: 1 });
  expect(drivers.map(({ name }: { name: string }) => name)).toEqual(['qemu', 'host']);
  expect(exit).toBe(drivers.some(({ usable }: { usable: boolean }) => usable) ? 0 : 2);
  const { env } = await startService();
  const served = JSON.parse((await rdctl(['doctor', '-o', 'json'], { env })).out);
  expect(served).toMatchObject({ status: { kind: 'Status' }, diagnostics: { checks: expect.any(Array) } });
});

test('-o yaml is the JSON document in another form, for results and errors alike', async () => {
  const { env } = await startService();
  const both = async (...argv: string[]) => {
    const [json, yaml] = [await rdctl([...argv, '-o', 'json'], { env }), await rdctl([...argv, '-o', 'yaml'], { env })];
    expect(yaml.exit).toBe(json.exit);
    expect(yaml.err).toBe(json.err);
    expect(yaml.out).not.toBe(json.out);
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  };
  await both('list-settings');
  await both('version');
  await both('history');
  await both('explain', 'containerEngine.name');
  await both('apply', '-f', '/nowhere.yaml');
});
