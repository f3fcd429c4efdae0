import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { clusterSpec, engineSpec, machineSpec } from '../../src/plan/backend.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { canonicalize, canonicalValue, parseByteSize, sameValue } from '../../src/settings/canonical.ts';
import { fillDefaults } from '../../src/settings/defaults.ts';
import { PLATFORMS } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { isLocked, lockRecord } from '../../src/settings/locks.ts';
import { changedPaths, mergeSettings } from '../../src/settings/merge.ts';
import { unknownKeys, validate } from '../../src/settings/validate.ts';
import { validate as isSettings } from '../../src/settings/validators/settings-v19.gen.js';
import { runs } from '../helpers/rounds.ts';
import {
  anyPayloadArbitrary,
  contextOn,
  payloadArbitrary,
  settingsArbitrary,
  validPart,
} from '../helpers/settings-arbitrary.ts';

describe.each(PLATFORMS)('settings on %s', (platform) => {
  test('generated settings are valid, and so is repeating them', () => {
    fc.assert(
      fc.property(settingsArbitrary(platform), (settings) => {
        expect(isSettings(settings)).toBe(true);
        expect(validate(settings, contextOn(platform, settings))).toEqual([]);
        expect(unknownKeys(settings)).toEqual([]);
      }),
    );
  });

  test('merging is idempotent, and repeating the result changes nothing', () => {
    fc.assert(
      fc.property(settingsArbitrary(platform), anyPayloadArbitrary(platform), (current, any) => {
        const payload = validPart(any, contextOn(platform, current));
        const once = mergeSettings(current, payload);
        expect(mergeSettings(once, payload)).toEqual(once);
        expect(changedPaths(once, mergeSettings(once, payload))).toEqual([]);
        expect(mergeSettings(current, once)).toEqual(mergeSettings(once, once));
        expect(isSettings(once)).toBe(true);
      }),
    );
  });

  test('adding defaults to complete settings changes nothing', () => {
    fc.assert(
      fc.property(settingsArbitrary(platform), (settings) => {
        expect(fillDefaults(settings, contextOn(platform))).toEqual(settings);
      }),
    );
  });

  test('a payload locks exactly its own settings, and only those are refused', () => {
    fc.assert(
      fc.property(payloadArbitrary(platform), anyPayloadArbitrary(platform), (profile, any) => {
        const record = lockRecord(profile);
        const held = mergeSettings(contextOn(platform).current, profile);
        const payload = validPart(any, contextOn(platform, held));
        const refused = validate(payload, { ...contextOn(platform, held), locked: record }).map(({ path }) => path);
        const changed: string[] = changedPaths(held, mergeSettings(held, payload));
        expect(new Set(refused)).toEqual(new Set(changed.filter((path) => isLocked(record, path))));
      }),
    );
  });
});

describe('canonical values', () => {
  test('canonicalizing is idempotent and leaves valid values alone', () => {
    fc.assert(
      fc.property(anyPayloadArbitrary(), (payload) => {
        const once = canonicalize(payload);
        expect(canonicalize(once)).toEqual(once);
        expect(once).toEqual(payload);
      }),
    );
  });

  test('spellings of one value are equal', () => {
    fc.assert(
      fc.property(settingsArbitrary('darwin'), (settings) => {
        for (const field of FIELDS) {
          const value = leafAt(settings, field.path) ?? null;
          expect(sameValue(field.path, value, value)).toBe(true);
          expect(sameValue(field.path, respelled(value), value), field.path).toBe(true);
          expect(canonicalValue(field.path, canonicalValue(field.path, value))).toEqual(
            canonicalValue(field.path, value),
          );
        }
      }),
    );
  });

  test('canonicalizing never throws and never loses a member', () => {
    fc.assert(
      fc.property(anyJsonObject(), (payload) => {
        expect(Object.keys(canonicalize(payload))).toEqual(Object.keys(payload));
      }),
    );
  });
});

test('leaves and setLeaf are inverse', () => {
  fc.assert(
    fc.property(anyPayloadArbitrary(), (payload) => {
      const rebuilt: JsonObject = {};
      for (const [path, value] of leaves(payload)) setLeaf(rebuilt, path, value);
      expect(rebuilt).toEqual(payload);
    }),
  );
});

test('validation handles any JSON object, with pointers that resolve', () => {
  fc.assert(
    fc.property(anyJsonObject(), (payload) => {
      for (const issue of validate(payload, contextOn('linux'))) expect(issue.pointer).toMatch(/^\//);
      unknownKeys(payload);
    }),
  );
});

function respelled(value: JsonValue): JsonValue {
  if (value === 'moby') return 'docker';
  if (typeof value === 'boolean' || typeof value === 'number') return String(value);
  if (typeof value === 'string' && /^\d+\.\d+\.\d+$/.test(value)) return `v${value}+k3s1`;
  if (typeof value === 'string' && /^\d+GiB$/.test(value)) return `${Number.parseInt(value, 10) * 1024} mib`;
  return value;
}

describe('what the validator of complete settings accepts', () => {
  const defaults = contextOn('linux').current;
  const size = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.stringMatching(/^[0-9]{1,3}[.]?[0-9]{0,2} ?[kgiB]{0,3}$/),
    fc.constantFrom('', ' ', '1\n', '9'.repeat(65), `${'9'.repeat(55)} YiB`, '1e3', '-1GiB', '٣GiB', '1\u212a'),
  );

  test('is a disk size exactly when it can be parsed as one', () => {
    fc.assert(
      fc.property(size, (diskSize) => {
        const settings = structuredClone(defaults);
        settings.experimental.virtualMachine.diskSize = diskSize;
        expect(isSettings(settings)).toBe(parseByteSize(diskSize) !== undefined);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('can be turned into specs', () => {
    const strings = FIELDS.filter(({ type, enum: closed }) => type === 'string' && !closed).map(({ path }) => path);
    const integers = FIELDS.filter(({ type }) => type === 'integer').map(({ path }) => path);
    const values = fc.tuple(
      fc.dictionary(fc.constantFrom(...strings), fc.oneof(size, fc.string()), { maxKeys: 5 }),
      fc.dictionary(fc.constantFrom(...integers), fc.oneof(fc.integer(), fc.double()), { maxKeys: 5 }),
    );
    fc.assert(
      fc.property(settingsArbitrary('linux'), values, (settings, [texts, numbers]) => {
        const odd = structuredClone(settings);
        for (const [path, value] of Object.entries({ ...texts, ...numbers })) setLeaf(odd, path, value);
        fc.pre(isSettings(odd));
        const specs = [
          machineSpec(odd, DEFAULT_BLOCKS),
          engineSpec(odd, DEFAULT_BLOCKS),
          clusterSpec(odd, DEFAULT_BLOCKS),
        ];
        expect(JSON.parse(JSON.stringify(specs))).toEqual(specs);
      }),
    );
  });
});

/** Objects that partly look like settings: known names with any values, including inherited names. */
function anyJsonObject(): fc.Arbitrary<JsonObject> {
  const names = [
    ...new Set(FIELDS.flatMap(({ path }) => path.split('.'))),
    'constructor',
    '__proto__',
    'toString',
    'typo',
  ];
  const { node } = fc.letrec<{ node: JsonValue }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom<JsonValue[]>(null, true, 0, -1.5, '', 'true', '12', 'moby', '9p', []),
      fc.dictionary(fc.constantFrom(...names), tie('node'), { maxKeys: 5 }),
    ),
  }));
  return fc.dictionary(fc.constantFrom(...names), node, { maxKeys: 6 }).filter(isObject);
}
