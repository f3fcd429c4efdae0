import { keyAt, type RegistryKey, type RegistryValue } from '../../profiles/formats/registry.ts';
import { childOf, childrenOf, type XmlElement } from './xml.ts';

/** What an administrator enters in the controls of a policy, by the id of the element: a list as lines, a table as pairs. */
export type Given = Readonly<Record<string, string | number | readonly string[] | ReadonlyMap<string, string>>>;
export type PolicyState = { enabled: Given } | 'disabled';

/** A registry change: without a `value` the value is deleted, without a `name` every value of the key. */
interface Write {
  key: string;
  name?: string;
  value?: { type: string; data: Exclude<RegistryValue['data'], undefined> };
}

/**
 * Sets policies one after the other, as Group Policy does according to the definition files, and returns the resulting registry
 * below a hive. It only knows the rules of the format, not our settings.
 * @throws Error for what an editor rejects (a number out of range, a missing value), and for what is unknown here.
 */
export function registryOf(definitions: XmlElement, states: ReadonlyMap<string, PolicyState>): RegistryKey {
  const hive: RegistryKey = { name: 'HKLM', values: [], keys: [] };
  const policies = childrenOf(childOf(definitions, 'policies'), 'policy');
  for (const [name, state] of states) {
    const policy = policies.find(({ attributes }) => attributes.name === name);
    if (!policy) throw new Error(`there is no policy ${name}`);
    for (const write of writesOf(policy, state)) perform(hive, write);
  }
  return hive;
}

function perform(hive: RegistryKey, { key: path, name, value }: Write): void {
  const key = keyAt(hive, path.split('\\'));
  key.values = key.values.filter((each) => name !== undefined && each.name.toLowerCase() !== name.toLowerCase());
  if (name !== undefined && value) key.values.push({ name, ...value });
}

function writesOf(policy: XmlElement, state: PolicyState): Write[] {
  const enabled = state !== 'disabled';
  const elements = childrenOf(policy, 'elements').flatMap(({ children }) => children);
  const given = enabled ? state.enabled : {};
  for (const id of Object.keys(given)) {
    if (!elements.some(({ attributes }) => attributes.id === id)) throw new Error(`there is no element ${id}`);
  }
  return [
    ...ownValue(policy, enabled),
    ...listed(policy, enabled),
    ...elements.flatMap((element) => elementWrites(element, keyOf(policy, policy), enabled ? given : undefined)),
  ];
}

/** Without values of its own, a policy that names a value writes 1, and deletes it when disabled. */
function ownValue(policy: XmlElement, enabled: boolean): Write[] {
  const name = policy.attributes.valueName;
  if (name === undefined) return [];
  const place = { key: keyOf(policy, policy), name };
  const [given] = childrenOf(policy, enabled ? 'enabledValue' : 'disabledValue');
  if (given) return [{ ...place, ...literal(given) }];
  return [{ ...place, ...(enabled ? { value: { type: 'REG_DWORD', data: 1 } } : {}) }];
}

/** A policy with a list for only one state deletes those values in the other state. */
function listed(policy: XmlElement, enabled: boolean): Write[] {
  const [own] = childrenOf(policy, enabled ? 'enabledList' : 'disabledList');
  if (own) return itemsOf(own, policy).map(({ place, item }) => ({ ...place, ...literal(childOf(item, 'value')) }));
  const [other] = enabled ? [] : childrenOf(policy, 'enabledList');
  return other ? itemsOf(other, policy).map(({ place }) => place) : [];
}

function itemsOf(list: XmlElement, policy: XmlElement): { place: Write; item: XmlElement }[] {
  return childrenOf(list, 'item').map((item) => {
    const key = item.attributes.key ?? list.attributes.defaultKey ?? keyOf(policy, policy);
    return { item, place: { key, name: required(item, 'valueName') } };
  });
}

function literal(holder: XmlElement): Pick<Write, 'value'> {
  const [value, ...others] = holder.children;
  if (!value || others.length > 0) throw new Error(`<${holder.tag}> holds not one value`);
  switch (value.tag) {
    case 'delete':
      return {};
    case 'decimal':
      return { value: { type: 'REG_DWORD', data: Number(required(value, 'value')) } };
    case 'string':
      return { value: { type: 'REG_SZ', data: value.text } };
    default:
      throw new Error(`<${value.tag}> is no value`);
  }
}

/** Attributes that are supported here; the others (`storeAsText`, `expandable`, `soft`, `maxStrings`) change what is written. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  decimal: ['id', 'key', 'valueName', 'required', 'minValue', 'maxValue'],
  enum: ['id', 'key', 'valueName', 'required'],
  list: ['id', 'key', 'additive', 'explicitValue'],
  multiText: ['id', 'key', 'valueName', 'required', 'maxLength'],
  text: ['id', 'key', 'valueName', 'required', 'maxLength'],
};

/** @param given undefined when the policy is disabled. */
function elementWrites(element: XmlElement, policyKey: string, given: Given | undefined): Write[] {
  const unknown = Object.keys(element.attributes).filter((name) => !KNOWN[element.tag]?.includes(name));
  if (unknown.length > 0) throw new Error(`<${element.tag}> with ${unknown.join(', ')} is not known`);
  const key = element.attributes.key ?? policyKey;
  const id = required(element, 'id');
  const value = given?.[id];
  if (element.tag === 'list') return tableWrites(element, key, value);
  const place = { key, name: required(element, 'valueName') };
  if (!given) return [place];
  if (value === undefined) {
    if (element.attributes.required === 'true') throw new Error(`${id} needs a value`);
    return [];
  }
  return [{ ...place, ...elementValue(element, value) }];
}

function elementValue(element: XmlElement, value: Given[string]): Pick<Write, 'value'> {
  const refused = (why: string) => new Error(`${element.attributes.id} does not take ${String(value)}: ${why}`);
  const { minValue = '0', maxValue = '9999', maxLength = '1023' } = element.attributes;
  switch (element.tag) {
    case 'decimal':
      if (!Number.isInteger(value)) throw refused('no whole number');
      if (Number(value) < Number(minValue) || Number(value) > Number(maxValue)) throw refused('out of range');
      return { value: { type: 'REG_DWORD', data: Number(value) } };
    case 'text':
      if (typeof value !== 'string' || value === '') throw refused('no text');
      if (value.length > Number(maxLength)) throw refused('too long');
      return { value: { type: 'REG_SZ', data: value } };
    case 'multiText':
      if (!Array.isArray(value) || value.length === 0) throw refused('no lines');
      if (value.some((line) => line.length > Number(maxLength))) throw refused('too long');
      return { value: { type: 'REG_MULTI_SZ', data: [...value] } };
    case 'enum': {
      const item = childrenOf(element, 'item').find(({ attributes }) => attributes.displayName === value);
      if (!item) throw refused('no such item');
      return literal(childOf(item, 'value'));
    }
    default:
      throw new Error(`<${element.tag}> is not known`);
  }
}

function tableWrites(element: XmlElement, key: string, value: Given[string] | undefined): Write[] {
  const { additive = 'false', explicitValue = 'false' } = element.attributes;
  if (explicitValue !== 'true') throw new Error('lists without names are not known');
  const entries = value instanceof Map ? [...value] : [];
  const writes = entries.map(([name, data]): Write => ({ key, name, value: { type: 'REG_SZ', data } }));
  return additive === 'true' ? writes : [{ key }, ...writes];
}

function keyOf(element: XmlElement, policy: XmlElement): string {
  return element.attributes.key ?? required(policy, 'key');
}

function required({ tag, attributes }: XmlElement, name: string): string {
  const value = attributes[name];
  if (value === undefined) throw new Error(`<${tag}> has no ${name}`);
  return value;
}
