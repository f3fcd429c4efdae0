import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadDesired } from '../../profiles/document/load.ts';
import { importedText, profileText } from '../../profiles/document/write.ts';
import type { JsonObject } from '../../src/json.ts';
import { sameValue } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { runs } from '../helpers/rounds.ts';
import { settingsArbitrary } from '../helpers/settings-arbitrary.ts';

const DEFAULTS: JsonObject = defaultSettings({ platform: 'linux', arch: 'x64' });
const SECRET = 'experimental.virtualMachine.proxy.password';

function write(settings: JsonObject, all = false) {
  return profileText({
    name: 'test',
    settings,
    defaults: DEFAULTS,
    all,
    state: 'started',
    schema: 'schemas/profile.json',
    origin: 'a test',
  });
}

async function read(text: string) {
  const context = {
    cwd: '/',
    env: {},
    platform: 'linux' as const,
    arch: 'x64',
    readStdin: async () => Buffer.from(text),
  };
  const { desired, findings } = await loadDesired(['-'], context);
  expect(findings).toEqual([]);
  return desired?.request;
}

/** Texts that YAML could take for another type. */
const awkward = fc.oneof(
  fc.constantFrom(
    '',
    'yes',
    'no',
    'null',
    '~',
    '1.30',
    '0x1f',
    '- a',
    'a: b',
    'a #b',
    '*a',
    '&a',
    '!a',
    '%a',
    '@a',
    '[',
    '{',
    '|',
    '>',
    '\t',
    ' x ',
    "'",
    '"',
    '\\',
    '\u0085',
    '\u2028',
    '\ufeff',
    '\u007f',
    '2026-01-02',
    '<<',
    '=',
    '---',
  ),
  fc.string({ maxLength: 10 }),
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => Buffer.from(text).toString()),
);

test('what is written reads as the settings it was made from', async () => {
  await fc.assert(
    fc.asyncProperty(
      settingsArbitrary('linux'),
      awkward,
      fc.dictionary(awkward, fc.boolean(), { maxKeys: 4 }),
      fc.boolean(),
      async (settings, text, map, all) => {
        const full: JsonObject = structuredClone(settings);
        setLeaf(full, 'images.namespace', text);
        const {
          __proto__: _refused,
          constructor: _too,
          prototype: _three,
          ...entries
        } = map as Record<string, boolean>;
        setLeaf(full, 'diagnostics.mutedChecks', entries);
        const request = await read(write(full, all));
        const written = new Map(leaves(request?.settings ?? {}));
        for (const [path, value] of leaves(full)) {
          if (path === SECRET || path === 'version') continue;
          const back = written.get(path);
          if (back === undefined) expect(all || !sameValue(path, value, leafAt(DEFAULTS, path))).toBe(false);
          else expect(sameValue(path, back, value), path).toBe(true);
        }
      },
    ),
    { numRuns: runs(150) },
  );
});

describe('what is omitted', () => {
  test('defaults but one to begin with, unless all are requested', async () => {
    expect((await read(write(DEFAULTS)))?.settings).toEqual({ version: 19, containerEngine: { name: 'moby' } });
    const all = leaves((await read(write(DEFAULTS, true)))?.settings ?? {}).map(([path]) => path);
    expect(
      leaves(DEFAULTS)
        .map(([path]) => path)
        .filter((path) => !all.includes(path)),
    ).toEqual([SECRET]);
  });

  test('a secret, even if it is alone in its section', async () => {
    const settings = structuredClone(DEFAULTS);
    setLeaf(settings, SECRET, 'hunter2');
    const text = write(settings);
    expect(text).not.toContain('hunter2');
    expect(text).toContain('# password: { fromEnv: PROXY_PASSWORD }');
    expect((await read(text))?.settings).toMatchObject({ version: 19 });
  });
});

test('a comment explains each setting, and lines stay short', () => {
  const lines = write(DEFAULTS, true).split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(130);
  const at = lines.indexOf('    memoryInGB: 2');
  expect(lines[at - 1]).toMatch(/^ {4}# \S/);
});

test('without a schema on this computer, the first line says how to get one', () => {
  const profile = { name: 'test', settings: DEFAULTS, defaults: DEFAULTS, all: false, origin: 'a test' };
  const [first] = profileText({ ...profile, state: 'started', schema: undefined }).split('\n');
  expect(first).toMatch(/^# .*`rdctl init --out-file FILE --with-schema`/);
  expect(importedText({ settings: {}, locked: [], schema: undefined, sources: ['a.plist'] })).not.toContain('$schema');
});
