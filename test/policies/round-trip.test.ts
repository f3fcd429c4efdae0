import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plistText } from '../../profiles/formats/plist.ts';
import { regText } from '../../profiles/formats/reg.ts';
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

  test('as reg.exe exports it', async () => {
    await fc.assert(
      fc.asyncProperty(payloadArbitrary('win32'), async (settings) => {
        const found = await lockedAt(place, 'win32', {
          queryRegistry: async () => KEY,
          exportRegistry: async () => written(settings),
        });
        expect(found).toEqual(meaning(settings));
        expect(leafAt(found ?? {}, 'version')).toBe(19);
      }),
      RUNS,
    );
  });
});
