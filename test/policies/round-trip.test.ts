import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plistText } from '../../profiles/formats/plist.ts';
import { parseRegistryFile, regText } from '../../profiles/formats/reg.ts';
import type { RegistryKey, RegistryValue } from '../../profiles/formats/registry.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import type { PolicyPlace } from '../../profiles/policies/places.ts';
import { type PolicyPrograms, policyPrograms } from '../../profiles/policies/places.ts';
import type { PolicyHost } from '../../profiles/policies/policy.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import type { JsonObject } from '../../src/json.ts';
import { canonicalize } from '../../src/settings/canonical.ts';
import type { Platform } from '../../src/settings/field.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { runs } from '../helpers/rounds.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// A service reads what `create-profile` writes, and finds what was meant.

const KEY = 'HKLM\\SOFTWARE\\Policies\\Rancher Desktop';

function hostOn(platform: Platform): PolicyHost {
  return platform === 'darwin' ? { platform, arch: 'arm64', osRelease: '23.1.0' } : { platform, arch: 'x64' };
}

async function lockedAt(place: PolicyPlace, platform: Platform, programs: PolicyPrograms = policyPrograms()) {
  const { locked, warnings } = await readPolicies({ places: [place], programs }, hostOn(platform));
  expect(warnings).toEqual([]);
  return locked?.settings;
}

/** What a profile means: canonical, and without empty sections. */
function meaning(settings: JsonObject): JsonObject {
  const known: JsonObject = {};
  for (const [path, value] of leaves(canonicalize(settings))) setLeaf(known, path, value);
  return known;
}

const RUNS = { numRuns: runs(60) };

test('JSON on Linux', async () => {
  const locked = join(temporaryDirectory(), 'locked.json');
  const place = { format: 'json' as const, defaults: `${locked}.none`, locked };
  await fc.assert(
    fc.asyncProperty(payloadArbitrary('linux'), async (settings) => {
      writeFileSync(locked, JSON.stringify(settings));
      expect(await lockedAt(place, 'linux')).toEqual(meaning(settings));
    }),
    RUNS,
  );
});

test('property lists on macOS', async () => {
  const locked = join(temporaryDirectory(), 'locked.plist');
  const place = { format: 'plist' as const, defaults: `${locked}.none`, locked };
  await fc.assert(
    fc.asyncProperty(payloadArbitrary('darwin'), async (settings) => {
      writeFileSync(locked, plistText(await deploymentTree(settings)));
      expect(await lockedAt(place, 'darwin')).toEqual(meaning(settings));
    }),
    RUNS,
  );
});

describe('the registry on Windows', () => {
  const place: PolicyPlace = { format: 'registry', key: KEY };
  const written = async (settings: JsonObject) =>
    Buffer.from(regText(await deploymentTree(settings), 'hklm', 'locked'));

  test('as a file of the registry editor', async () => {
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('win32'), async (settings) => {
        const found = await lockedAt(place, 'win32', {
          plistAsJson: () => Promise.reject(new Error('not on Windows')),
          // A question mark: the console output cannot be trusted.
          queryRegistry: async () => 'HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\?',
          exportRegistry: async () => written(settings),
        });
        expect(found).toEqual(meaning(settings));
      }),
      RUNS,
    );
  });

  test('as query output', async () => {
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('win32'), async (settings) => {
        const key = parseRegistryFile(KEY, await written(settings));
        if (!key) throw new Error('the file is not understood');
        const printed = lines(KEY.replace('HKLM', 'HKEY_LOCAL_MACHINE'), key).join('\r\n');
        const found = await lockedAt(place, 'win32', {
          plistAsJson: () => Promise.reject(new Error('not on Windows')),
          queryRegistry: async () => printed,
          exportRegistry: async () => written(settings),
        });
        expect(found).toEqual(meaning(settings));
        expect(leafAt(found ?? {}, 'version')).toBe(19);
      }),
      RUNS,
    );
  });
});

/** The form of `reg query /s`. */
function lines(path: string, { values, keys }: RegistryKey): string[] {
  return [
    path,
    ...values.map((value) => `    ${value.name}    ${value.type}    ${dataText(value)}`),
    '',
    ...keys.flatMap((key) => lines(`${path}\\${key.name}`, key)),
  ];
}

function dataText({ data }: RegistryValue): string {
  if (Array.isArray(data)) return data.join('\\0');
  return typeof data === 'number' ? `0x${data.toString(16)}` : (data ?? '');
}
