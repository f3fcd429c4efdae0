import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { PARTS, type Part } from '../../profiles/deployment/part.ts';
import { admxFiles } from '../../profiles/export/admx/files.ts';
import { admxExceptions, type Policy, policies } from '../../profiles/export/admx/policies.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { interpretPolicy } from '../../src/policies/interpretation.ts';
import { keyAt } from '../../src/policies/registry-key.ts';
import { registryPolicy } from '../../src/policies/registry-policy.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Field } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { type Given, type PolicyState, registryOf } from '../helpers/group-policy.ts';
import { childOf, childrenOf, everyElement, parseXml, type XmlElement } from '../helpers/xml.ts';

const XMLLINT = 'xmllint';
const HOST = { platform: 'win32', arch: 'x64' } as const;
const DEFAULTS: JsonObject = JSON.parse(JSON.stringify(defaultSettings(HOST)));

const files = new Map(admxFiles().map(({ path, text }) => [path, text]));
const admxText = files.get('RancherDesktop.admx') ?? '';
const admlText = files.get('en-US/RancherDesktop.adml') ?? '';
const admx = parseXml(admxText);
const adml = parseXml(admlText);
const resources = childOf(adml, 'resources');
const strings = childOf(resources, 'stringTable').children;
const presentations = childOf(resources, 'presentationTable').children;
const policyElements = childOf(admx, 'policies').children;
const textOf = (id: string) => strings.find(({ attributes }) => attributes.id === id)?.text ?? '';

/** What xmllint has against a file; undefined where there is no xmllint. */
function againstRules(text: string): string | undefined {
  const ran = spawnSync(XMLLINT, ['--noout', '--nonet', '--schema', 'test/helpers/admx.xsd', '-'], { input: text });
  if (ran.error) return undefined;
  return ran.status === 0 ? '' : ran.stderr.toString();
}

/** What the reader of the application makes of the registry, or why it refuses to start. */
function profileOf(states: ReadonlyMap<string, PolicyState>, part: Part): { settings: JsonObject; warnings: string[] } {
  const hive = registryOf(admx, states);
  const path = ['SOFTWARE', 'Policies', 'Rancher Desktop', part];
  const written = registryPolicy(['HKLM', ...path].join('\\'), keyAt(hive, path));
  if (!written) throw new Error('nothing was written');
  const warnings: string[] = [];
  const policy = interpretPolicy(written, { locked: part === 'locked', host: HOST, warnings });
  expect(policy.version).toBe(19);
  return { settings: policy.settings, warnings };
}

function alone(name: string, part: Part, state: PolicyState): JsonObject {
  const { settings, warnings } = profileOf(new Map([[name, state]]), part);
  expect(warnings).toEqual([]);
  return settings;
}

/** Values of every kind that a setting may have: the ends of its range, all that it offers, one and several entries. */
function valuesOf({ type, enum: values, format, min = 0, max = 0xffff_ffff }: Field): JsonValue[] {
  if (values) return [...values];
  switch (type) {
    case 'boolean':
      return [true, false];
    case 'integer':
      return [min, min + 1, max - 1, max];
    case 'string':
      return format === 'kubernetes-version'
        ? ['1.30.2', '1.31.0-rc.1']
        : ['a', ' b ', 'C:\\Zoë "q" & <😀>\\', '%PATH%'];
    case 'string[]':
      return format === 'noproxy-list'
        ? [['10.0.0.0/8'], ['fe80::/10', '.example.com', '*.test', 'localhost']]
        : [['org/name'], ['org/', 'registry.example.com/', 'org/name:1.0']];
    default:
      return [{ 'org/name': '1.0' }, { 'org/name': '1.0', 'registry.example.com:5000/a/b': 'latest' }];
  }
}

/** Any value of a setting that its control takes. */
function anyValue(field: Field): fc.Arbitrary<JsonValue> {
  const { type, enum: values, format, min = 0, max = 0xffff_ffff } = field;
  const line = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
    .filter((text) => !/[\p{Cc}\p{Cs}]/u.test(text));
  if (type === 'integer') return fc.integer({ min, max });
  const free = type === 'string' ? format === undefined : format === 'image-pattern-list';
  if (values || !free) return fc.constantFrom(...valuesOf(field));
  if (type === 'string') return line;
  return fc.uniqueArray(
    line.filter((text) => text.trim() !== ''),
    { minLength: 1, maxLength: 5 },
  );
}

/** What is to be given in the controls of the policy for this value. */
function stateFor({ name, field }: Policy, value: JsonValue): PolicyState {
  if (value === false) return 'disabled';
  if (value === true) return { enabled: {} };
  return { enabled: { [name]: given(name, field, value) } };
}

function given(name: string, { enum: values }: Field, value: JsonValue): Given[string] {
  if (values) return itemFor(name, String(value));
  if (typeof value === 'number' || typeof value === 'string') return value;
  return Array.isArray(value)
    ? value.map(String)
    : new Map(Object.entries(value ?? {}).map(([k, v]) => [k, String(v)]));
}

/** The item of a list that people see under this text. */
function itemFor(policy: string, shown: string): string {
  const element = policyElements.find(({ attributes }) => attributes.name === policy);
  const items = element ? everyElement(element).filter(({ tag }) => tag === 'item') : [];
  const names = items.map(({ attributes }) => attributes.displayName ?? '');
  const found = names.find((name) => textOf(name.slice('$(string.'.length, -1)) === shown);
  if (found === undefined) throw new Error(`${policy} offers no ${shown}`);
  return found;
}

function expected({ field, needs }: Policy, value: JsonValue): JsonObject {
  const settings: JsonObject = { version: 19 };
  setLeaf(settings, field.path, value);
  if (value === true) for (const { path } of needs) setLeaf(settings, path, true);
  return settings;
}

/** The key of a map stays behind without entries, and that is a map. */
function disabled({ path, type }: Field): JsonObject {
  const settings: JsonObject = { version: 19 };
  if (type.startsWith('map')) setLeaf(settings, path, {});
  return settings;
}

describe('files', () => {
  test.each([...files.keys()])('%s is what was agreed on', async (path) => {
    await expect(files.get(path)).toMatchFileSnapshot(`../golden/profiles/${path}`);
  });

  test('are the same at every call', () => {
    expect(admxFiles()).toEqual([...files].map(([path, text]) => ({ path, text })));
  });

  test.each([...files])('%s ends lines as Windows does, is plain ASCII, and small enough for Intune', (_, text) => {
    expect(text).toMatch(/^(?:[ -~]*\r\n)+$/);
    expect(text.length).toBeLessThan(1_000_000);
  });

  test('follow the rules of the format', (context) => {
    for (const [path, text] of files) {
      const complaint = againstRules(text);
      if (complaint === undefined) return context.skip('xmllint is not installed');
      expect([path, complaint]).toEqual([path, '']);
    }
  });

  test.each<[string, string, (text: string) => string]>([
    ['a category that does not exist', 'admx', (text) => text.replace('ref="Locked_kubernetes"', 'ref="Locked_none"')],
    [
      'a system that does not exist',
      'admx',
      (text) => text.replace('ref="SUPPORTED_RancherDesktop"', 'ref="SUPPORTED"'),
    ],
    ['two policies of one name', 'admx', (text) => text.replace('name="Defaults_Version"', 'name="Locked_Version"')],
    ['two categories of one name', 'admx', (text) => text.replace('name="Defaults_images"', 'name="Locked_images"')],
    ['a name with a dot', 'admx', (text) => text.replace('name="Locked_Version"', 'name="Locked.Version"')],
    ['a key with a backslash at its end', 'admx', (text) => text.replace(/(key="[^"]*)"/, '$1\\"')],
    ['a policy without a key', 'admx', (text) => text.replace(/ key="[^"]*"/, '')],
    ['a text in place of a reference', 'admx', (text) => text.replace('$(string.Locked)', 'Locked')],
    ['a number beyond 32 bits', 'admx', (text) => text.replace('maxValue="65535"', 'maxValue="4294967296"')],
    [
      'lists in front of values',
      'admx',
      (text) => text.replace(/(<enabledValue>.*?)(<enabledList>.*?<\/enabledList>)/s, '$2$1'),
    ],
    ['an empty list', 'admx', (text) => text.replace(/<enabledList>.*?<\/enabledList>/s, '<enabledList/>')],
    ['an element that does not exist', 'admx', (text) => text.replaceAll('multiText ', 'multiLine ')],
    ['a version without a dot', 'admx', (text) => text.replace('revision="19.0"', 'revision="19"')],
    ['two texts of one id', 'adml', (text) => text.replace('<string id="Locked">', '<string id="Locked_Version">')],
    [
      'two presentations of one id',
      'adml',
      (text) => text.replaceAll('"Locked_kubernetes_port"', '"Locked_kubernetes_version"'),
    ],
    ['a control of no element', 'adml', (text) => text.replace(/ refId="[^"]*"/, '')],
    ['a combination box', 'adml', (text) => text.replaceAll('textBox', 'comboBox')],
    ['an empty text', 'adml', (text) => text.replace(/(<string id="Locked_Version">)[^<]*/, '$1')],
  ])('are refused by those rules with %s', (_, kind, change) => {
    const text = kind === 'admx' ? admxText : admlText;
    const changed = change(text);
    expect(changed).not.toBe(text);
    expect(againstRules(changed) ?? 'fails to validate').toContain('fails to validate');
  });
});

describe('references', () => {
  const referred = (root: XmlElement, table: 'string' | 'presentation') =>
    everyElement(root)
      .flatMap(({ attributes }) => Object.values(attributes))
      .flatMap((value) => new RegExp(`^\\$\\(${table}\\.(.*)\\)$`).exec(value)?.[1] ?? []);

  test.each([
    ['string', strings],
    ['presentation', presentations],
  ] as const)('every %s exists once, and none is left over', (table, elements) => {
    const ids = elements.map(({ attributes }) => attributes.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(referred(admx, table))).toEqual(new Set(ids));
    expect(referred(adml, table)).toEqual([]);
  });

  test('the controls of a presentation are those of its policy, of the kind that fits', () => {
    const controls: Record<string, string> = {
      decimal: 'decimalTextBox',
      enum: 'dropdownList',
      list: 'listBox',
      multiText: 'multiTextBox',
      text: 'textBox',
    };
    for (const policy of policyElements) {
      const elements = childrenOf(policy, 'elements').flatMap(({ children }) => children);
      const id = /^\$\(presentation\.(.*)\)$/.exec(policy.attributes.presentation ?? '')?.[1];
      expect(id === undefined).toBe(elements.length === 0);
      if (id === undefined) continue;
      const shown = presentations.find(({ attributes }) => attributes.id === id);
      const found = shown?.children.filter(({ attributes }) => attributes.refId !== undefined);
      expect(found?.map(({ tag, attributes }) => [tag, attributes.refId])).toEqual(
        elements.map(({ tag, attributes }) => [controls[tag], attributes.id]),
      );
    }
  });

  test('names differ in more than letter case', () => {
    for (const elements of [policyElements, childOf(admx, 'categories').children]) {
      const names = elements.map(({ attributes }) => attributes.name?.toLowerCase());
      expect(new Set(names).size).toBe(names.length);
    }
  });

  test('texts are as old as the definitions', () => {
    expect(childOf(admx, 'resources').attributes.minRequiredRevision).toBe(adml.attributes.revision);
    expect(admx.attributes.revision).toBe(adml.attributes.revision);
  });
});

describe('which settings', () => {
  test('every lockable one is a policy in both parts, or an exception with a reason', () => {
    const lockable = FIELDS.filter((field) => field.lockable).map(({ path }) => path);
    const exceptions = admxExceptions().map(({ path }) => path);
    for (const part of PARTS) {
      const own = policies().flatMap((policy) => (policy.part === part ? [policy.field.path] : []));
      expect([...own, ...exceptions].sort()).toEqual([...lockable].sort());
    }
  });

  test('the exceptions', () => {
    expect(admxExceptions()).toMatchInlineSnapshot(`
      [
        {
          "path": "application.adminAccess",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "application.pathManagementStrategy",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "virtualMachine.memoryInGB",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "virtualMachine.numberCPUs",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "virtualMachine.type",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "virtualMachine.useRosetta",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "virtualMachine.mount.type",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "WSL.integrations",
          "reason": "its entries are switches, and a list of a policy writes texts only",
        },
        {
          "path": "diagnostics.mutedChecks",
          "reason": "its entries are switches, and a list of a policy writes texts only",
        },
        {
          "path": "experimental.virtualMachine.diskSize",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.securityModel",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.protocolVersion",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.msizeInKib",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.cacheMode",
          "reason": "the application on Windows refuses any value but its own",
        },
        {
          "path": "experimental.virtualMachine.proxy.password",
          "reason": "it is a secret, and policies can be read by everybody on the computer",
        },
        {
          "path": "experimental.virtualMachine.sshPortForwarder",
          "reason": "the application on Windows refuses any value but its own",
        },
      ]
    `);
  });

  test('the file holds these policies, and one for the version of each part', () => {
    const names = [...PARTS.map((part) => (part === 'locked' ? 'Locked_Version' : 'Defaults_Version'))];
    expect(policyElements.map(({ attributes }) => attributes.name)).toEqual([
      ...names,
      ...policies().map(({ name }) => name),
    ]);
    expect(new Set(policyElements.map((policy) => policy.attributes.class))).toEqual(new Set(['Both']));
  });
});

describe('a policy alone', () => {
  const cases = policies().flatMap((policy) =>
    valuesOf(policy.field).map((value) => [policy.name, JSON.stringify(value), policy, value] as const),
  );

  test.each(cases)('%s with %s is a valid profile with that value', (name, _, policy, value) => {
    expect(alone(name, policy.part, stateFor(policy, value))).toEqual(expected(policy, value));
  });

  test.each(policies().filter(({ field }) => field.type !== 'boolean'))(
    '$name disabled is a valid profile without a value, or with an empty map',
    ({ name, part, field }) => {
      expect(alone(name, part, 'disabled')).toEqual(disabled(field));
    },
  );

  test.each(PARTS)('the one for the version of the %s part writes just that in either state', (part) => {
    const name = part === 'locked' ? 'Locked_Version' : 'Defaults_Version';
    for (const state of [{ enabled: {} }, 'disabled'] as const)
      expect(alone(name, part, state)).toEqual({ version: 19 });
  });

  test('a switch that brings another one along needs it', () => {
    const needy = policies().filter(({ needs }) => needs.length > 0);
    expect(needy.map(({ name }) => name)).toEqual(
      PARTS.map((part) => `${part === 'locked' ? 'Locked' : 'Defaults'}_experimental_kubernetes_options_spinkube`),
    );
    for (const { name, part, needs, field } of needy) {
      const hive = registryOf(admx, new Map([[name, { enabled: {} }]]));
      for (const { key, valueName } of needs) {
        const place = keyAt(hive, key.split('\\'));
        place.values = place.values.filter((value) => value.name !== valueName);
      }
      const written = registryPolicy(name, keyAt(hive, ['SOFTWARE', 'Policies', 'Rancher Desktop', part]));
      if (!written) throw new Error('nothing was written');
      const read = () => interpretPolicy(written, { locked: part === 'locked', host: HOST, warnings: [] });
      expect(read).toThrow(expect.objectContaining({ details: [expect.stringContaining(field.path)] }));
    }
  });
});

describe('an editor does not take', () => {
  const numbers = policies().filter(({ field }) => field.type === 'integer');
  test.each(numbers)('a number outside the range of $name', ({ name, field: { min = 0, max = 0xffff_ffff } }) => {
    for (const value of [min - 1, max + 1]) {
      expect(() => registryOf(admx, new Map([[name, { enabled: { [name]: value } }]]))).toThrow('out of range');
    }
  });

  const asking = policies().filter(({ field }) => field.type !== 'boolean' && !field.type.startsWith('map'));
  test.each(asking)('$name without a value', ({ name }) => {
    expect(() => registryOf(admx, new Map([[name, { enabled: {} }]]))).toThrow('needs a value');
  });
});

describe('policies together', () => {
  const of = (part: Part) => policies().filter((policy) => policy.part === part);

  test.each(PARTS)('all of the %s part with the last of their values are one profile with all of them', (part) => {
    const states = new Map<string, PolicyState>();
    const settings: JsonObject = { version: 19 };
    for (const policy of of(part)) {
      const value = valuesOf(policy.field).at(-1) ?? null;
      states.set(policy.name, stateFor(policy, value));
      setLeaf(settings, policy.field.path, value);
    }
    expect(profileOf(states, part)).toEqual({ settings, warnings: [] });
  });

  // What these may be depends on each other.
  const FREE = policies().filter(({ field }) => !/webAssembly|spinkube|mobyStorageDriver/.test(field.path));

  test('any of them with any values, in any order, are one profile', () => {
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
      { numRuns: 300 },
    );
  });

  test('neither part writes into the other one', () => {
    const states = new Map(
      of('locked').map((policy) => [policy.name, stateFor(policy, valuesOf(policy.field)[0] ?? null)]),
    );
    const hive = registryOf(admx, states);
    expect(keyAt(hive, ['SOFTWARE', 'Policies', 'Rancher Desktop']).keys.map(({ name }) => name)).toEqual(['Locked']);
  });

  test('one that is disabled leaves the version of the others', () => {
    const states = new Map<string, PolicyState>([
      ['Locked_kubernetes_enabled', { enabled: {} }],
      ['Locked_kubernetes_port', 'disabled'],
    ]);
    expect(profileOf(states, 'locked').settings).toEqual({ version: 19, kubernetes: { enabled: true } });
  });
});

describe('what an administrator sees', () => {
  const control = ({ name }: Policy) =>
    presentations.find(({ attributes }) => attributes.id === name)?.children.find(({ attributes }) => attributes.refId);

  test.each(policies().filter(({ field }) => field.type === 'integer' || field.enum || field.type === 'string'))(
    'the control of $name begins with the default',
    (policy) => {
      const shownControl = control(policy);
      if (!shownControl) throw new Error('there is no control');
      const { attributes, children } = shownControl;
      const initial = leafAt(DEFAULTS, policy.field.path);
      const text = children.find(({ tag }) => tag === 'defaultValue')?.text ?? '';
      const { enum: values, type } = policy.field;
      const shown = values
        ? values[Number(attributes.defaultItem)]
        : type === 'integer'
          ? Number(attributes.defaultValue)
          : text;
      expect(shown).toBe(initial);
    },
  );

  let helps: Map<string, string>;
  beforeAll(() => {
    helps = new Map(strings.map(({ attributes, text }) => [attributes.id ?? '', text]));
  });
  const helpOf = (name: string) => helps.get(`${name}_Help`) ?? '';

  test.each(policies())('the help of $name', ({ name, part, field }) => {
    const help = helpOf(name);
    expect(textOf(name)).toBe(`${field.path} (${part})`);
    expect(help).toContain(`Setting: ${field.path} (${part})`);
    expect(help).toContain(field.description.replaceAll('`', '"'));
    for (const value of field.enum ?? []) expect(help).toContain(`"${value}"`);
    if (field.type === 'integer') expect(help).toContain(`from ${field.min} to ${field.max}`);
    if (field.unit !== undefined) expect(help).toContain(`(${field.unit})`);
    const initial = leafAt(DEFAULTS, field.path);
    const shown = Array.isArray(initial)
      ? initial.join(', ') || 'an empty list'
      : typeof initial === 'object'
        ? 'empty'
        : String(initial) || 'an empty text';
    expect(help).toContain(`Default: ${shown}\n`);
    expect(help).toContain(part === 'locked' ? 'nobody can change it' : 'everybody can change it afterwards');
    expect(help).toContain('version 19 to SOFTWARE\\Policies\\Rancher Desktop\\');
  });
});
