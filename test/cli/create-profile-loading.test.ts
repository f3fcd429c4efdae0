import { expect, test, vi } from 'vitest';
import { EXPORTERS } from '../../profiles/formats/index.ts';
import { rdctl } from '../helpers/cli.ts';

// Help and completion are asked for often; the formats are heavy and none of their business.

const loaded = vi.hoisted(() => ({ modules: [] as string[] }));
const formats = ['plist', 'json', 'reg', 'mobileconfig', 'admx'] as const;
for (const name of formats) {
  vi.doMock(`../../profiles/formats/${name}.ts`, async (original) => {
    loaded.modules.push(name);
    return original();
  });
}

test('the names of the formats are known without loading one', async () => {
  const help = await rdctl(['create-profile', '--help']);
  expect(help.out).toContain(`Format: ${[...Object.keys(EXPORTERS), 'admx'].join(', ')}\n`);
  expect((await rdctl(['__complete', 'create-profile', '--output', ''])).out).toContain('plist\n');
  expect((await rdctl(['create-profile', '--output', 'x', '-b', '{}'])).exit).toBe(1);
  expect(loaded.modules).toEqual([]);
});

test('and one is loaded when it is written', async () => {
  expect((await rdctl(['create-profile', '--output', 'json', '-b', '{}'])).exit).toBe(0);
  expect(loaded.modules).toEqual(['json']);
});
