import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject } from '../../src/json.ts';
import { downgrade, missingIn } from '../../src/settings/downgrade.ts';
import { PLATFORMS } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { rounds, runs } from '../helpers/rounds.ts';
import { anyPayloadArbitrary } from '../helpers/settings-arbitrary.ts';

/** The part of a payload that an older version can hold at all. */
function representable(payload: JsonObject, version: number): JsonObject {
  const missing: string[] = missingIn(version, payload).map(({ path }) => path);
  const kept: JsonObject = { version: SCHEMA_VERSION };
  for (const [path, value] of leaves(payload)) if (!missing.includes(path)) setLeaf(kept, path, value);
  return kept;
}

describe.each(PLATFORMS)('on %s', (platform) => {
  test('migrating a downgraded document leads back to the same settings', () => {
    let moved = 0;
    fc.assert(
      fc.property(anyPayloadArbitrary(platform), fc.integer({ min: 1, max: SCHEMA_VERSION }), (any, version) => {
        const payload = representable(any, version);
        const older = downgrade(payload, version);
        expect(older.version).toBe(version);
        if (leaves(older).length < leaves(payload).length) moved++;
        expect(leaves(migrate(older, { platform, partial: true }))).toEqual(leaves(payload));
      }),
      { numRuns: runs(500) },
    );
    expect(moved).toBeGreaterThan(rounds(2, 10));
  });

  // Released versions; each schema also covers the unreleased ones after it.
  test.each([4, 6, 10, 14, 16])('the result has the structure of version %d', (version) => {
    fc.assert(
      fc.property(anyPayloadArbitrary(platform), (any) => {
        const older = downgrade(representable(any, version), version);
        expect(validateShape(older, version)).toEqual([]);
      }),
    );
  });
});

test('the input is not changed', () => {
  const payload = { version: 19, WSL: { integrations: { Debian: true } } };
  const older = downgrade(payload, 4);
  const { kubernetes } = older;
  if (isObject(kubernetes) && isObject(kubernetes.WSLIntegrations)) kubernetes.WSLIntegrations.Debian = false;
  expect(payload.WSL.integrations.Debian).toBe(true);
});

test('fields move back to their old names', () => {
  const payload = {
    version: 19,
    application: { adminAccess: true, telemetry: { enabled: false } },
    containerEngine: { name: 'moby', allowedImages: { patterns: ['a/*'] } },
    virtualMachine: { numberCPUs: 3 },
  };
  expect(downgrade(payload, 4)).toEqual({
    version: 4,
    telemetry: false,
    containerEngine: { imageAllowList: { patterns: ['a/*'] } },
    kubernetes: { suppressSudo: false, containerEngine: 'moby', numberCPUs: 3 },
  });
  const vm = { version: 19, virtualMachine: { type: 'vz', mount: { type: 'virtiofs' } } };
  expect(downgrade(vm, 15)).toEqual({
    version: 15,
    virtualMachine: { type: 'vz' },
    experimental: { virtualMachine: { mount: { type: 'virtiofs' } } },
  });
  expect(downgrade(vm, 14)).toEqual({
    version: 14,
    experimental: { virtualMachine: { type: 'vz', mount: { type: 'virtiofs' } } },
  });
});

test('every field that is too new is reported by name', () => {
  const payload = {
    version: 19,
    application: { theme: 'dark' },
    containerEngine: { mobyStorageDriver: 'auto', name: 'moby' },
  };
  expect(() => downgrade(payload, 16)).toThrow(
    '"application.theme" needs settings version 18 (Rancher Desktop 1.23); ' +
      '"containerEngine.mobyStorageDriver" needs settings version 17 (Rancher Desktop 1.22); the application has version 16',
  );
});

test('every setting has a name in the version that introduced it', () => {
  for (const { path, since } of FIELDS) {
    const payload: JsonObject = { version: SCHEMA_VERSION };
    if (path !== 'version') setLeaf(payload, path, 'x');
    expect(missingIn(since, payload)).toEqual([]);
  }
});
