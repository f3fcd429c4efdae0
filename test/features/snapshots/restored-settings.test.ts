import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Driver, SupportMatrix } from '../../../src/drivers/driver.ts';
import { simulated } from '../../../src/drivers/machines/simulated/index.ts';
import { restoredSettings } from '../../../src/features/snapshots/backend-data.ts';
import type { JsonObject } from '../../../src/json.ts';
import { DEFAULT_BLOCKS } from '../../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../../src/settings/defaults.ts';
import { createDesiredStore } from '../../../src/state/desired-store.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const host = { platform: 'linux', arch: 'x64' } as const;
const BEFORE = defaultSettings(host);
const NOW = {
  ...BEFORE,
  application: { ...BEFORE.application, extensions: { ...BEFORE.application.extensions, installed: { 'a/b': '1' } } },
  virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 9 },
};

async function restored(saved: JsonObject | string, { locks = {}, support = {} as Partial<SupportMatrix> } = {}) {
  const file = join(temporaryDirectory(), 'settings.json');
  writeFileSync(file, typeof saved === 'string' ? saved : JSON.stringify(saved));
  const store = createDesiredStore({
    initial: { settings: NOW, ...DEFAULT_BLOCKS, power: 'started', generation: 1 },
    locks,
    persist: async () => undefined,
    onChange: () => undefined,
  });
  const opened = await simulated.open({
    ...{ directory: temporaryDirectory(), logs: temporaryDirectory(), env: {} },
    ...{ log: () => undefined, now: () => 0 },
  });
  const driver: Driver = { ...opened, support: { ...opened.support, ...support } };
  return restoredSettings(file, { host, driver, store });
}

test('are those of the snapshot, with the current extensions', async () => {
  const settings = await restored({ ...BEFORE, virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 4 } });
  expect(settings).toMatchObject({ virtualMachine: { memoryInGB: 4 } });
  expect(settings.application.extensions.installed).toEqual({ 'a/b': '1' });
});

test('keep what is locked now, and take the rest', async () => {
  const saved = { ...BEFORE, virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 4, numberCPUs: 3 } };
  const settings = await restored(saved, { locks: { virtualMachine: { memoryInGB: true } } });
  expect(settings.virtualMachine).toMatchObject({ memoryInGB: 9, numberCPUs: 3 });
});

test('are migrated from an older version', async () => {
  const settings = await restored({
    version: 10,
    containerEngine: { name: 'moby' },
    virtualMachine: { memoryInGB: 5 },
  });
  expect(settings).toMatchObject({ version: 19, containerEngine: { name: 'moby' }, virtualMachine: { memoryInGB: 5 } });
});

test('are refused with errors, when unusable, or without a required protection', async () => {
  await expect(restored({ ...BEFORE, virtualMachine: 7 })).rejects.toMatchObject({ code: 'ERR_SETTINGS_FILE' });
  await expect(restored('{')).rejects.toMatchObject({ code: 'ERR_SETTINGS_FILE' });
  const allowedImages = { enabled: true, patterns: [] };
  const saved = { ...BEFORE, containerEngine: { ...BEFORE.containerEngine, allowedImages } };
  const support = { 'containerEngine.allowedImages.enabled': { level: 'unsupported', reason: 'of the test' } } as const;
  await expect(restored(saved, { support })).rejects.toThrow(
    'containerEngine.allowedImages.enabled is true in it, and cannot be enforced: of the test',
  );
});
