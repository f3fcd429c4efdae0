import { afterAll, beforeAll, expect, test, vi } from 'vitest';

const OLDER_SHAPES = '../../src/settings/older-shapes.ts';
const loaded: string[] = [];
beforeAll(() => {
  vi.resetModules();
  vi.doMock(OLDER_SHAPES, async (original) => {
    loaded.push('older-shapes');
    return original();
  });
});
afterAll(() => {
  vi.doUnmock(OLDER_SHAPES);
  vi.resetModules();
});

// They are most of the time that an export would take.
test('older schemas are only loaded for older settings', async () => {
  const { deploymentTree } = await import('../../profiles/formats/tree.ts');
  const { EXPORTERS } = await import('../../profiles/formats/index.ts');
  const tree = await deploymentTree({ version: 19, kubernetes: { enabled: false } });
  for (const load of [EXPORTERS.plist, EXPORTERS.reg, EXPORTERS.json]) {
    (await load?.())?.text(tree, { hive: 'hklm', part: 'locked' });
  }
  expect(loaded).toEqual([]);
  await deploymentTree({ version: 18, kubernetes: { enabled: false } });
  expect(loaded).toEqual(['older-shapes']);
});
