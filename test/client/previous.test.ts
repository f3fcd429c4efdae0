import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { previousState, recordPrevious } from '../../src/client/previous.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const TARGET = { product: 'rdctl', home: '/home/user/.local/share/rdctl', driver: 'simulated', simulated: true };
const SETTINGS = defaultSettings({ platform: 'linux', arch: 'x64' });

async function kept() {
  const where = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  mkdirSync(where.state, { recursive: true });
  await recordPrevious(where, { target: TARGET, settings: SETTINGS, power: 'stopped' }, new Date(0));
  return where;
}

test('the same home with another driver is another target', async () => {
  const wayBackFor = await previousState(await kept());
  expect(wayBackFor(TARGET).request).toMatchObject({
    state: 'stopped',
    settings: { containerEngine: { name: 'moby' } },
  });
  expect(wayBackFor(TARGET).request.prune).toContain('application.extensions.installed');
  expect(() => wayBackFor({ ...TARGET, driver: 'host' })).toThrow(
    expect.objectContaining({
      code: 'ERR_WRONG_TARGET',
      message: expect.stringMatching(/with driver simulated, but this is .* with driver host/),
    }),
  );
});

test('port forwards are restored on their own; a record without them says nothing about them', async () => {
  const where = await kept();
  expect((await previousState(where))(TARGET)).not.toHaveProperty('portForwards');
  const portForwards = [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 }];
  await recordPrevious(where, { target: TARGET, settings: SETTINGS, power: 'stopped', portForwards }, new Date(0));
  expect((await previousState(where))(TARGET).portForwards).toEqual({ entries: portForwards, exclusive: true });
  const [name = ''] = readdirSync(where.state);
  const file = join(where.state, name);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"service": "web"', '"service": 5'));
  const wayBackFor = await previousState(where);
  expect(() => wayBackFor(TARGET)).toThrow(expect.objectContaining({ code: 'ERR_IO' }));
});

test('reports a file that does not hold a state', async () => {
  const where = await kept();
  const [name = ''] = readdirSync(where.state);
  writeFileSync(join(where.state, name), '{"formatVersion":1}');
  const wayBackFor = await previousState(where);
  expect(() => wayBackFor(TARGET)).toThrow(
    expect.objectContaining({ code: 'ERR_IO', message: expect.stringContaining(name) }),
  );
});
