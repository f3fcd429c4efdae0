import fc from 'fast-check';
import { expect } from 'vitest';
import { admxFiles } from '../../profiles/formats/admx.ts';
import { type AdmxPolicy, policies } from '../../profiles/formats/admx-policies.ts';
import type { Part } from '../../profiles/formats/format.ts';
import { keyAt, type RegistryKey } from '../../profiles/formats/registry.ts';
import { interpretPolicy } from '../../profiles/policies/interpretation.ts';
import { registryPolicy } from '../../profiles/policies/registry-policy.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { type Given, type PolicyState, registryOf } from './group-policy.ts';
import { childOf, everyElement, parseXml } from './xml.ts';

export const FILES: ReadonlyMap<string, string> = new Map(admxFiles().map(({ path, text }) => [path, text]));
export const ADMX_TEXT = FILES.get('RancherDesktop.admx') ?? '';
export const ADML_TEXT = FILES.get('en-US/RancherDesktop.adml') ?? '';
export const ADMX = parseXml(ADMX_TEXT);
export const ADML = parseXml(ADML_TEXT);
export const STRINGS = childOf(childOf(ADML, 'resources'), 'stringTable').children;
export const PRESENTATIONS = childOf(childOf(ADML, 'resources'), 'presentationTable').children;
export const POLICY_ELEMENTS = childOf(ADMX, 'policies').children;

const TEXTS = new Map(STRINGS.map(({ attributes, text }) => [attributes.id, text]));
export function textOf(id: string): string {
  return TEXTS.get(id) ?? '';
}

/** What the application reads from the registry; throws where it refuses to start. */
export function profileOf(
  states: ReadonlyMap<string, PolicyState>,
  part: Part,
): { settings: JsonObject; warnings: string[] } {
  return profileIn(registryOf(ADMX, states), part);
}

/** @param hive what is below HKLM. */
export function profileIn(hive: RegistryKey, part: Part): { settings: JsonObject; warnings: string[] } {
  const path = ['SOFTWARE', 'Policies', 'Rancher Desktop', part];
  const written = registryPolicy(['HKLM', ...path].join('\\'), keyAt(hive, path));
  if (!written) throw new Error('nothing was written');
  const warnings: string[] = [];
  const host = { platform: 'win32', arch: 'x64' } as const;
  const policy = interpretPolicy(written, { locked: part === 'locked', host, warnings });
  expect(policy.version).toBe(19);
  return { settings: policy.settings, warnings };
}

/** Representative values of a setting: the limits of its range, all options, one and several entries. */
export function valuesOf({ type, enum: values, format, min = 0, max = 0xffff_ffff }: SettingField): JsonValue[] {
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

/** Policies by their names, as cases of `checkEach`. */
export function namedPolicies(holds: (policy: AdmxPolicy) => boolean = () => true): [string, AdmxPolicy][] {
  return policies().flatMap((policy) => (holds(policy) ? [[policy.name, policy]] : []));
}

/** Every policy with each of its values, as cases of `checkEach`. */
export function policyValues(): [string, { policy: AdmxPolicy; value: JsonValue }][] {
  return policies().flatMap((policy) =>
    valuesOf(policy.field).map((value): [string, { policy: AdmxPolicy; value: JsonValue }] => [
      `${policy.name} with ${JSON.stringify(value)}`,
      { policy, value },
    ]),
  );
}

/** Any value of a setting that its control accepts. */
export function anyValue(field: SettingField): fc.Arbitrary<JsonValue> {
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

/** What to enter in the controls of the policy for this value. */
export function stateFor({ name, field }: AdmxPolicy, value: JsonValue): PolicyState {
  if (value === false) return 'disabled';
  if (value === true) return { enabled: {} };
  return { enabled: { [name]: given(name, field, value) } };
}

function given(name: string, { enum: values }: SettingField, value: JsonValue): Given[string] {
  if (values) return itemFor(name, String(value));
  if (typeof value === 'number' || typeof value === 'string') return value;
  return Array.isArray(value)
    ? value.map(String)
    : new Map(Object.entries(value ?? {}).map(([k, v]) => [k, String(v)]));
}

/** The list item shown under this text. */
function itemFor(policy: string, shown: string): string {
  const element = POLICY_ELEMENTS.find(({ attributes }) => attributes.name === policy);
  const items = element ? everyElement(element).filter(({ tag }) => tag === 'item') : [];
  const names = items.map(({ attributes }) => attributes.displayName ?? '');
  const found = names.find((name) => textOf(name.slice('$(string.'.length, -1)) === shown);
  if (found === undefined) throw new Error(`${policy} offers no ${shown}`);
  return found;
}
