import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AdmxPolicy, policies } from '../../profiles/formats/admx-policies.ts';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import { keyAt } from '../../profiles/formats/registry.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import {
  ADMX,
  anyValue,
  namedPolicies,
  policyValues,
  profileIn,
  profileOf,
  stateFor,
  textOf,
  valuesOf,
} from '../helpers/admx-profile.ts';
import { checkEach } from '../helpers/check-each.ts';
import { type PolicyState, registryOf } from '../helpers/group-policy.ts';
import { runs } from '../helpers/rounds.ts';

function alone(name: string, part: Part, state: PolicyState): JsonObject {
  const { settings, warnings } = profileOf(new Map([[name, state]]), part);
  expect(warnings).toEqual([]);
  return settings;
}

function expected({ field, needs }: AdmxPolicy, value: JsonValue): JsonObject {
  const settings: JsonObject = { version: 19 };
  setLeaf(settings, field.path, value);
  if (value === true) for (const { path } of needs) setLeaf(settings, path, true);
  return settings;
}

/** The key of a map remains without entries, which is an empty map. */
function disabled({ path, type }: SettingField): JsonObject {
  const settings: JsonObject = { version: 19 };
  if (type.startsWith('map')) setLeaf(settings, path, {});
  return settings;
}

describe('a single policy', () => {
  test('with any of its values is a valid profile with that value', async () => {
    await checkEach(policyValues(), ({ policy, value }) => {
      expect(alone(policy.name, policy.part, stateFor(policy, value))).toEqual(expected(policy, value));
    });
  });

  test('that is disabled is a valid profile without a value, or with an empty map', async () => {
    await checkEach(
      namedPolicies(({ field }) => field.type !== 'boolean'),
      ({ name, part, field }) => {
        expect(alone(name, part, 'disabled')).toEqual(disabled(field));
      },
    );
  });

  test.each(PARTS)('the version policy of the %s part writes only the version, in either state', (part) => {
    const name = part === 'locked' ? 'Locked_Version' : 'Defaults_Version';
    for (const state of [{ enabled: {} }, 'disabled'] as const)
      expect(alone(name, part, state)).toEqual({ version: 19 });
  });

  test('a switch that depends on another requires it', () => {
    const needy = policies().filter(({ needs }) => needs.length > 0);
    expect(needy.map(({ name }) => name)).toEqual(
      PARTS.map((part) => `${part === 'locked' ? 'Locked' : 'Defaults'}_experimental_kubernetes_options_spinkube`),
    );
    for (const { name, part, needs, field } of needy) {
      const hive = registryOf(ADMX, new Map([[name, { enabled: {} }]]));
      for (const { key, valueName } of needs) {
        const place = keyAt(hive, key.split('\\'));
        place.values = place.values.filter((value) => value.name !== valueName);
      }
      const read = () => profileIn(hive, part);
      expect(read).toThrow(expect.objectContaining({ details: [expect.stringContaining(field.path)] }));
    }
  });
});

describe('what the help says about an invalid value', () => {
  const enabled = (path: string, part: Part, value: JsonValue) => {
    const policy = policies().find((each) => each.part === part && each.field.path === path);
    if (!policy) throw new Error(`${path} is no policy`);
    return { help: textOf(`${policy.name}_Help`), states: new Map([[policy.name, stateFor(policy, value)]]) };
  };

  test.each<[string, Part, JsonValue]>([
    ['kubernetes.version', 'locked', 'latest'],
    ['experimental.virtualMachine.proxy.noproxy', 'locked', ['10.0.0.0/8', 'a b']],
    ['experimental.virtualMachine.proxy.noproxy', 'defaults', ['10.0.0.0/99']],
    ['application.extensions.allowed.list', 'locked', ['a b']],
    ['application.extensions.installed', 'defaults', { 'org/name': 'a b' }],
    ['application.extensions.installed', 'locked', { 'org/name:1.0': '1.0' }],
  ])('%s (%s) with %j keeps the application from starting', (path, part, value) => {
    const { help, states } = enabled(path, part, value);
    expect(help).toContain('the application does not start');
    expect(() => profileOf(states, part)).toThrow(expect.objectContaining({ code: 'ERR_PROFILE_INVALID' }));
  });

  test.each(PARTS)('so does a duplicate entry in a list of the %s part', (part) => {
    const { help, states } = enabled('containerEngine.allowedImages.patterns', part, ['org/', 'org/']);
    expect(help).toContain('without empty lines or duplicates');
    expect(() => profileOf(states, part)).toThrow(expect.objectContaining({ code: 'ERR_PROFILE_INVALID' }));
  });

  test('an invalid default cluster version is ignored with a notice', () => {
    const { help, states } = enabled('kubernetes.version', 'defaults', 'latest');
    expect(help).toContain('is replaced by the default, with a notice');
    const { settings, warnings } = profileOf(states, 'defaults');
    expect(leafAt(settings, 'kubernetes.version')).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('kubernetes.version')]);
  });
});

describe('the editor rejects', () => {
  test('a number outside the range', async () => {
    await checkEach(
      namedPolicies(({ field }) => field.type === 'integer'),
      ({ name, field: { min = 0, max = 0xffff_ffff } }) => {
        for (const value of [min - 1, max + 1]) {
          expect(() => registryOf(ADMX, new Map([[name, { enabled: { [name]: value } }]]))).toThrow('out of range');
        }
      },
    );
  });

  test('an empty value', async () => {
    await checkEach(
      namedPolicies(({ field }) => field.type !== 'boolean' && !field.type.startsWith('map')),
      ({ name }) => {
        expect(() => registryOf(ADMX, new Map([[name, { enabled: {} }]]))).toThrow('needs a value');
      },
    );
  });
});

describe('policies combined', () => {
  const of = (part: Part) => policies().filter((policy) => policy.part === part);

  test.each(PARTS)('all of the %s part, at their last values, form one profile with all of them', (part) => {
    const states = new Map<string, PolicyState>();
    const settings: JsonObject = { version: 19 };
    for (const policy of of(part)) {
      const value = valuesOf(policy.field).at(-1) ?? null;
      states.set(policy.name, stateFor(policy, value));
      setLeaf(settings, policy.field.path, value);
    }
    expect(profileOf(states, part)).toEqual({ settings, warnings: [] });
  });

  // The allowed values of these depend on each other.
  const FREE = policies().filter(({ field }) => !/webAssembly|spinkube|mobyStorageDriver/.test(field.path));

  test('any of them, at any values and in any order, form one profile', () => {
    const chosen = (part: Part) =>
      fc
        .shuffledSubarray(
          FREE.filter((policy) => policy.part === part),
          { minLength: 1 },
        )
        .chain((some) =>
          fc.tuple(...some.map(({ name, field }) => fc.tuple(fc.constant(name), fc.option(anyValue(field))))),
        );
    const one = fc.constantFrom(...PARTS).chain((part) => fc.tuple(fc.constant(part), chosen(part)));
    fc.assert(
      fc.property(one, ([part, pairs]) => {
        const settings: JsonObject = { version: 19 };
        const states = new Map<string, PolicyState>();
        for (const [name, value] of pairs) {
          const policy = FREE.find((each) => each.name === name);
          if (!policy) throw new Error(`there is no ${name}`);
          const { path, type } = policy.field;
          states.set(name, value === null ? 'disabled' : stateFor(policy, value));
          const written = value ?? (type === 'boolean' ? false : leafAt(disabled(policy.field), path));
          if (written !== undefined) setLeaf(settings, path, written);
        }
        expect(profileOf(states, part)).toEqual({ settings, warnings: [] });
      }),
      { numRuns: runs(300) },
    );
  });

  test('no part writes into the other', () => {
    const states = new Map(
      of('locked').map((policy) => [policy.name, stateFor(policy, valuesOf(policy.field)[0] ?? null)]),
    );
    const hive = registryOf(ADMX, states);
    expect(keyAt(hive, ['SOFTWARE', 'Policies', 'Rancher Desktop']).keys.map(({ name }) => name)).toEqual(['Locked']);
  });

  test('a disabled policy keeps the version written by the others', () => {
    const states = new Map<string, PolicyState>([
      ['Locked_kubernetes_enabled', { enabled: {} }],
      ['Locked_kubernetes_port', 'disabled'],
    ]);
    expect(profileOf(states, 'locked').settings).toEqual({ version: 19, kubernetes: { enabled: true } });
  });
});
