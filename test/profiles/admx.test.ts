import { describe, expect, test } from 'vitest';
import { admxFiles } from '../../profiles/formats/admx.ts';
import { type AdmxPolicy, admxExceptions, policies } from '../../profiles/formats/admx-policies.ts';
import { PARTS } from '../../profiles/formats/format.ts';
import type { JsonObject } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import {
  ADML,
  ADMX,
  FILES,
  namedPolicies,
  POLICY_ELEMENTS,
  PRESENTATIONS,
  STRINGS,
  textOf,
} from '../helpers/admx-profile.ts';
import { checkEach } from '../helpers/check-each.ts';
import { childOf, childrenOf, everyElement, type XmlElement } from '../helpers/xml.ts';

const DEFAULTS: JsonObject = JSON.parse(JSON.stringify(defaultSettings({ platform: 'win32', arch: 'x64' })));

describe('files', () => {
  test.each([...FILES.keys()])('%s matches the golden file', async (path) => {
    await expect(FILES.get(path)).toMatchFileSnapshot(`../golden/profiles/${path}`);
  });

  test('are the same on every call', () => {
    expect(admxFiles()).toEqual([...FILES].map(([path, text]) => ({ path, text })));
  });

  test.each([...FILES])('%s has Windows line ends, is plain ASCII, and small enough for Intune', (_, text) => {
    expect(text).toMatch(/^(?:[ -~]*\r\n)+$/);
    expect(text.length).toBeLessThan(1_000_000);
  });
});

describe('references', () => {
  const referred = (root: XmlElement, table: 'string' | 'presentation') =>
    everyElement(root)
      .flatMap(({ attributes }) => Object.values(attributes))
      .flatMap((value) => new RegExp(`^\\$\\(${table}\\.(.*)\\)$`).exec(value)?.[1] ?? []);

  test.each([
    ['string', STRINGS],
    ['presentation', PRESENTATIONS],
  ] as const)('every %s exists once, and none is unused', (table, elements) => {
    const ids = elements.map(({ attributes }) => attributes.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(referred(ADMX, table))).toEqual(new Set(ids));
    expect(referred(ADML, table)).toEqual([]);
  });

  test('the controls of a presentation match its policy', () => {
    const controls: Record<string, string> = {
      decimal: 'decimalTextBox',
      enum: 'dropdownList',
      list: 'listBox',
      multiText: 'multiTextBox',
      text: 'textBox',
    };
    for (const policy of POLICY_ELEMENTS) {
      const elements = childrenOf(policy, 'elements').flatMap(({ children }) => children);
      const id = /^\$\(presentation\.(.*)\)$/.exec(policy.attributes.presentation ?? '')?.[1];
      expect(id === undefined).toBe(elements.length === 0);
      if (id === undefined) continue;
      const shown = PRESENTATIONS.find(({ attributes }) => attributes.id === id);
      const found = shown?.children.filter(({ attributes }) => attributes.refId !== undefined);
      expect(found?.map(({ tag, attributes }) => [tag, attributes.refId])).toEqual(
        elements.map(({ tag, attributes }) => [controls[tag], attributes.id]),
      );
    }
  });

  test('names do not differ only in case', () => {
    for (const elements of [POLICY_ELEMENTS, childOf(ADMX, 'categories').children]) {
      const names = elements.map(({ attributes }) => attributes.name?.toLowerCase());
      expect(new Set(names).size).toBe(names.length);
    }
  });

  test('every policy is below the category of its part, and every category below the root', () => {
    const parents = new Map(
      childOf(ADMX, 'categories').children.map((each) => [
        each.attributes.name,
        childrenOf(each, 'parentCategory')[0]?.attributes.ref,
      ]),
    );
    const above = (name: string | undefined, passed: readonly string[] = []): readonly string[] => {
      if (name === undefined) return passed;
      expect(passed).not.toContain(name);
      return above(parents.get(name), [...passed, name]);
    };
    for (const name of parents.keys()) expect(above(name).at(-1)).toBe('RancherDesktop');
    for (const policy of POLICY_ELEMENTS) {
      const [part] = String(policy.attributes.name).split('_');
      expect(above(childOf(policy, 'parentCategory').attributes.ref).slice(-2)).toEqual([part, 'RancherDesktop']);
      expect(policy.attributes.key).toMatch(new RegExp(`\\\\Rancher Desktop\\\\${part}(?:\\\\|$)`));
    }
  });

  test('the namespace is not one of Microsoft', () => {
    expect(childOf(childOf(ADMX, 'policyNamespaces'), 'target').attributes.namespace).toMatch(/^Rdctl\./);
  });

  test('texts have the revision of the definitions', () => {
    expect(childOf(ADMX, 'resources').attributes.minRequiredRevision).toBe(ADML.attributes.revision);
    expect(ADMX.attributes.revision).toBe(ADML.attributes.revision);
  });
});

describe('which settings have policies', () => {
  test('every lockable one, in both parts, or it is an exception with a reason', () => {
    const lockable = FIELDS.filter((field) => field.lockable).map(({ path }) => path);
    const exceptions = admxExceptions().map(({ path }) => path);
    for (const part of PARTS) {
      const own = policies().flatMap((policy) => (policy.part === part ? [policy.field.path] : []));
      expect([...own, ...exceptions].sort()).toEqual([...lockable].sort());
    }
  });

  test('exceptions', () => {
    expect(admxExceptions()).toMatchInlineSnapshot(`
      [
        {
          "path": "application.adminAccess",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "application.pathManagementStrategy",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "virtualMachine.memoryInGB",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "virtualMachine.numberCPUs",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "virtualMachine.type",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "virtualMachine.useRosetta",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "virtualMachine.mount.type",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "WSL.integrations",
          "reason": "its entries are booleans, and policy lists can only contain strings",
        },
        {
          "path": "diagnostics.mutedChecks",
          "reason": "its entries are booleans, and policy lists can only contain strings",
        },
        {
          "path": "experimental.virtualMachine.diskSize",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.securityModel",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.protocolVersion",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.msizeInKib",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "experimental.virtualMachine.mount.9p.cacheMode",
          "reason": "the application on Windows refuses any value but the default",
        },
        {
          "path": "experimental.virtualMachine.proxy.password",
          "reason": "it is a secret, and every user of the computer can read policies",
        },
        {
          "path": "experimental.virtualMachine.sshPortForwarder",
          "reason": "the application on Windows refuses any value but the default",
        },
      ]
    `);
  });

  test('the file has exactly these policies, and one for the version of each part', () => {
    const names = [...PARTS.map((part) => (part === 'locked' ? 'Locked_Version' : 'Defaults_Version'))];
    expect(POLICY_ELEMENTS.map(({ attributes }) => attributes.name)).toEqual([
      ...names,
      ...policies().map(({ name }) => name),
    ]);
    expect(new Set(POLICY_ELEMENTS.map((policy) => policy.attributes.class))).toEqual(new Set(['Both']));
  });
});

describe('what an administrator sees', () => {
  const control = ({ name }: AdmxPolicy) =>
    PRESENTATIONS.find(({ attributes }) => attributes.id === name)?.children.find(({ attributes }) => attributes.refId);

  test('every control starts with the default', async () => {
    const hasDefault = ({ field }: AdmxPolicy) => field.type === 'integer' || field.enum || field.type === 'string';
    await checkEach(
      namedPolicies((policy) => Boolean(hasDefault(policy))),
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
        // When sorted, another item may be at that index.
        if (values) expect(attributes.noSort).toBe('true');
      },
    );
  });

  test('the help of every policy describes its setting', async () => {
    await checkEach(namedPolicies(), ({ name, part, field }) => {
      const help = textOf(`${name}_Help`);
      expect(textOf(name)).toBe(`${field.path} (${part})`);
      expect(help).toContain(`Setting: ${field.path} (${part})`);
      expect(help).toContain(field.description.replaceAll('`', '"'));
      for (const value of field.enum ?? []) expect(help).toContain(`"${value}"`);
      if (field.type === 'boolean') expect(help).toContain('Enabled writes true, Disabled writes false.');
      if (field.type === 'integer') expect(help).toContain(`from ${field.min} to ${field.max}`);
      if (field.unit !== undefined) expect(help).toContain(`(${field.unit})`);
      const initial = leafAt(DEFAULTS, field.path);
      const shown = Array.isArray(initial)
        ? initial.join(', ') || 'an empty list'
        : typeof initial === 'object'
          ? 'empty'
          : String(initial) || 'an empty text';
      expect(help).toContain(`Default: ${shown}\n`);
      expect(help).toContain(part === 'locked' ? 'users cannot change it' : 'users can change it afterwards');
      expect(help).toContain('version 19 to SOFTWARE\\Policies\\Rancher Desktop\\');
    });
  });
});
