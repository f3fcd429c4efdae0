import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('without a command: what can run, until something has; the help afterwards', async () => {
  const fresh = await rdctl([], { env: { RDCTL_HOME: temporaryDirectory() } });
  expect(fresh).toMatchObject({ exit: 0, err: '', out: expect.stringMatching(/^Nothing has run here yet\./) });
  const { env } = await startService();
  expect(await rdctl([], { env })).toMatchObject({
    exit: 0,
    out: expect.stringMatching(/^Usage:\n {2}rdctl COMMAND/m),
  });
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
