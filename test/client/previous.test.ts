import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepPrevious, previousRequest } from '../../src/client/previous.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/storage/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const TARGET = { product: 'rdctl', home: '/home/user/.local/share/rdctl', driver: 'simulated', simulated: true };
const SETTINGS = defaultSettings({ platform: 'linux', arch: 'x64' });

async function kept() {
  const where = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  mkdirSync(where.state, { recursive: true });
  await keepPrevious(where, { target: TARGET, settings: SETTINGS, power: 'stopped' }, new Date(0));
  return where;
}

test('the same home with another driver is another target', async () => {
  const requestFor = await previousRequest(await kept());
  expect(requestFor(TARGET)).toMatchObject({ state: 'stopped', settings: { containerEngine: { name: 'moby' } } });
  expect(requestFor(TARGET).prune).toContain('application.extensions.installed');
  expect(() => requestFor({ ...TARGET, driver: 'host' })).toThrow(
    expect.objectContaining({
      code: 'ERR_WRONG_TARGET',
      message: expect.stringMatching(/with driver simulated, and this is .* with driver host/),
    }),
  );
});

test('a file that does not hold a state is named', async () => {
  const where = await kept();
  const [name = ''] = readdirSync(where.state);
  writeFileSync(join(where.state, name), '{"formatVersion":1}');
  const requestFor = await previousRequest(where);
  expect(() => requestFor(TARGET)).toThrow(
    expect.objectContaining({ code: 'ERR_IO', message: expect.stringContaining(name) }),
  );
});
