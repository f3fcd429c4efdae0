import { afterEach, beforeEach, expect, test, vi } from 'vitest';

// Help and completion run often and do not need the formats, which are large.

const FORMATS = ['plist', 'json', 'reg', 'mobileconfig', 'admx'] as const;
const loaded: string[] = [];
beforeEach(() => {
  loaded.length = 0;
  vi.resetModules();
  for (const name of FORMATS)
    vi.doMock(`../../profiles/formats/${name}.ts`, async (original) => {
      loaded.push(name);
      return original();
    });
});
afterEach(() => {
  for (const name of FORMATS) vi.doUnmock(`../../profiles/formats/${name}.ts`);
  vi.resetModules();
});

test('listing the formats loads none of them', async () => {
  const { EXPORTERS } = await import('../../profiles/formats/index.ts');
  const { rdctl } = await import('../helpers/cli.ts');
  const help = await rdctl(['create-profile', '--help']);
  expect(help.out).toContain(`Format: ${[...Object.keys(EXPORTERS), 'admx'].join(', ')}\n`);
  expect((await rdctl(['__complete', 'create-profile', '--output', ''])).out).toContain('plist\n');
  expect((await rdctl(['create-profile', '--output', 'x', '-b', '{}'])).exit).toBe(1);
  expect(loaded).toEqual([]);
});

test('a format is loaded when it is written', async () => {
  const { rdctl } = await import('../helpers/cli.ts');
  expect((await rdctl(['create-profile', '--output', 'json', '-b', '{}'])).exit).toBe(0);
  expect(loaded).toEqual(['json']);
});
