import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { profileText } from '../../profiles/document/write.ts';
import { storedSettings } from '../../src/client/offline.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/storage/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HOST = { arch: 'x64', memoryBytes: 64 * 1024 ** 3 };

test('where nothing is stored, the settings are those that a first start takes on this computer', async () => {
  const home = temporaryDirectory();
  const stored = await storedSettings(places({}, 'linux', home), 'linux', HOST);
  const defaults = defaultSettings({ ...HOST, platform: 'linux' });
  expect(stored).toEqual({ settings: defaults, from: 'defaults' });
  expect(stored.settings.virtualMachine.memoryInGB).toBe(6);
  const text = profileText({
    settings: stored.settings,
    defaults,
    all: false,
    state: 'started',
    schema: 's',
    origin: 'o',
  });
  expect(text).toContain('# Everything is at its default.');
  expect(text).not.toContain('memoryInGB');
});

test('what is stored stays, whatever the computer has', async () => {
  const where = places({}, 'linux', temporaryDirectory());
  mkdirSync(dirname(where.settingsFile), { recursive: true });
  writeFileSync(where.settingsFile, JSON.stringify({ version: 19, virtualMachine: { memoryInGB: 3 } }));
  const { settings, from } = await storedSettings(where, 'linux', HOST);
  expect({ from, memory: settings.virtualMachine.memoryInGB }).toEqual({ from: 'file', memory: 3 });
});
