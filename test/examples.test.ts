import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadDesired } from '../profiles/document.ts';
import { validate as validProfile } from '../src/settings/validators/profile.gen.js';

const FILES = readdirSync('examples').filter((name) => /\.(ya?ml|json)$/.test(name));

const CONTEXT = {
  cwd: 'examples',
  env: {},
  platform: 'linux' as const,
  arch: 'x64',
  readStdin: async () => Buffer.alloc(0),
};

test('there are examples of both forms', () => {
  expect(FILES.length).toBeGreaterThanOrEqual(7);
  expect(FILES.filter((name) => name.endsWith('.json'))).not.toEqual([]);
});

describe.each(FILES)('%s', (name) => {
  test('is valid, without a warning', async () => {
    const loaded = await loadDesired([name], CONTEXT);
    expect(loaded.findings).toEqual([]);
    expect(loaded.warnings).toEqual([]);
    expect(loaded.desired).toBeDefined();
  });

  test('is explained, and the table of examples names it', () => {
    expect(readFileSync('examples/README.md', 'utf8')).toContain(`\`${name}\``);
    if (!name.endsWith('.json')) expect(readFileSync(`examples/${name}`, 'utf8')).toMatch(/^# \S/);
  });

  test('agrees with the schema that editors use', async () => {
    if (name.endsWith('.json')) return;
    const { parse } = await import('yaml');
    expect(validProfile(parse(readFileSync(`examples/${name}`, 'utf8')))).toBe(true);
  });
});
