import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepState, readPreviousState } from '../../src/client/rancher-desktop/previous.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const TARGET = { product: 'Other Desktop', home: '/home/user/other.json', driver: 'its own', simulated: false };
const SETTINGS = defaultSettings({ platform: 'linux', arch: 'x64' });

async function kept() {
  const where = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  mkdirSync(where.state, { recursive: true });
  await keepState(where, { target: TARGET, settings: SETTINGS, power: 'stopped' }, new Date(0));
  const [name = ''] = readdirSync(where.state);
  return { where, file: join(where.state, name) };
}

test('the state of a target comes back for that target alone, from a private file', async () => {
  const { where, file } = await kept();
  const request = await readPreviousState(where, TARGET);
  expect(request).toMatchObject({ state: 'stopped', settings: { containerEngine: { name: 'moby' } } });
  expect(request.prune).toContain('application.extensions.installed');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await expect(readPreviousState(where, { ...TARGET, home: '/other' })).rejects.toMatchObject({
    code: 'ERR_NOT_FOUND',
  });
  await expect(readPreviousState(where, { ...TARGET, product: 'rdctl' })).rejects.toMatchObject({
    code: 'ERR_WRONG_TARGET',
    message: expect.stringContaining('The previous state is from Other Desktop'),
  });
});

test('reports a file that does not hold a state', async () => {
  const { where, file } = await kept();
  for (const text of ['{"formatVersion":1}', 'no JSON']) {
    writeFileSync(file, text);
    await expect(readPreviousState(where, TARGET)).rejects.toMatchObject({
      code: 'ERR_IO',
      message: expect.stringContaining(file),
    });
  }
});
