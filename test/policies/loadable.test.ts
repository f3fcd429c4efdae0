import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { interpretPolicy } from '../../profiles/policies/interpretation.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { mergeSettings } from '../../src/settings/merge.ts';
import { saveSettings, usableSettings } from '../../src/state/settings-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;

const VALUES: readonly JsonValue[] = [
  ...['', ' ', 'x', '1', '-1GiB', '1 parsec', '999999999999999999999YiB', '1GiB', 'moby', '1.30.2'],
  ...[-1, 0, 1, 1.5, 65_536, 2 ** 53, true, false, null],
  ...[[], [''], ['x', 'x'], [1], {}, { x: true }, { x: 'x' }, { x: 1 }, { x: null }, { x: { y: 1 } }],
];

function interpreted(settings: JsonObject, locked: boolean): JsonObject | undefined {
  const written = {
    source: 'policy.json',
    settings,
    nameOf: (names: readonly string[]) => names.join('.'),
    quote: (json: string) => json,
    heading: 'heading',
    noVersion: 'no version',
    problems: [],
    ignored: [],
  };
  try {
    return interpretPolicy(written, { locked, host: HOST, warnings: [] }).settings;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_PROFILE_INVALID') return undefined;
    throw error;
  }
}

const SETTINGS = FIELDS.filter(({ path }) => path !== 'version');

test.each(SETTINGS)(
  '$path: a value that a policy may have leads to a settings file that the next start can read',
  async ({ path }: SettingField) => {
    const file = join(temporaryDirectory(), 'settings.json');
    let accepted = 0;
    for (const value of VALUES) {
      for (const locked of [false, true]) {
        const document: JsonObject = { version: 19 };
        setLeaf(document, path, value);
        const policy = interpreted(document, locked);
        if (!policy) continue;
        accepted += 1;
        const settings = mergeSettings(defaultSettings(HOST), policy);
        writeFileSync(file, '');
        await saveSettings(file, undefined, settings);
        expect(await usableSettings(file, HOST), `${path}: ${JSON.stringify(value)}`).toEqual(settings);
      }
    }
    expect(accepted).toBeLessThan(2 * VALUES.length);
  },
);
