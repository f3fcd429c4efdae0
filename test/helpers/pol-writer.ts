import type { RegistryKey, RegistryValue } from '../../profiles/formats/registry.ts';
import { type PolicyState, registryOf } from './group-policy.ts';
import { childrenOf, type XmlElement } from './xml.ts';

/** One entry of a policy file; a name may be a control code. */
export interface PolEntry {
  key: string;
  name: string;
  type: number;
  data: Buffer;
}

/** A `Registry.pol` file, as "Registry Policy File Format" of the Windows documentation describes it. */
export function polFile(entries: readonly PolEntry[], version = 1): Buffer {
  const signature = Buffer.alloc(8);
  signature.writeUInt32LE(0x6765_5250, 0);
  signature.writeUInt32LE(version, 4);
  return Buffer.concat([signature, ...entries.map(entryBytes)]);
}

function entryBytes({ key, name, type, data }: PolEntry): Buffer {
  const fields = [wide(`${key}\0`), wide(`${name}\0`), dword(type), dword(data.length), data];
  const separated = fields.flatMap((field, index) => (index === 0 ? [field] : [wide(';'), field]));
  return Buffer.concat([wide('['), ...separated, wide(']')]);
}

export const polText = (key: string, name: string, text: string): PolEntry => ({
  key,
  name,
  type: 1,
  data: wide(`${text}\0`),
});

export const polNumber = (key: string, name: string, value: number): PolEntry => ({
  key,
  name,
  type: 4,
  data: dword(value),
});

export const polList = (key: string, name: string, texts: readonly string[]): PolEntry => ({
  key,
  name,
  type: 7,
  data: wide([...texts, ''].map((text) => `${text}\0`).join('')),
});

/** A control code, with the space that Group Policy writes as its data. */
export const polCode = (key: string, code: string): PolEntry => polText(key, code, ' ');

/**
 * The entries that Group Policy stores for policies. A value that a disabled policy removes is stored as `**del.NAME`, and
 * `**delvals.` precedes the entries of a list that is not additive; a disabled list has only that entry (Microsoft's page about
 * the `list` element, and published registry.pol files).
 */
export function groupPolicyEntries(definitions: XmlElement, states: ReadonlyMap<string, PolicyState>): PolEntry[] {
  const policies = definitions.children.flatMap((section) => childrenOf(section, 'policy'));
  const deletions = [...states].flatMap(([name, state]) => {
    const policy = policies.find(({ attributes }) => attributes.name === name);
    return policy ? deletionsOf(policy, state) : [];
  });
  const values = valuesBelow('', registryOf(definitions, states));
  const keys = new Set([...deletions, ...values].map(({ key }) => key));
  return [...keys].flatMap((key) => [...deletions, ...values].filter((entry) => entry.key === key));
}

function deletionsOf(policy: XmlElement, state: PolicyState): PolEntry[] {
  const elements = childrenOf(policy, 'elements').flatMap(({ children }) => children);
  return elements.flatMap(({ tag, attributes: { key = policy.attributes.key ?? '', additive, valueName } }) => {
    if (tag === 'list') return additive === 'true' ? [] : [polCode(key, '**delvals.')];
    return state === 'disabled' ? [polCode(key, `**del.${valueName}`)] : [];
  });
}

function valuesBelow(path: string, { values, keys }: RegistryKey): PolEntry[] {
  return [
    ...values.map((value) => polValue(path, value)),
    ...keys.flatMap((key) => valuesBelow(path === '' ? key.name : `${path}\\${key.name}`, key)),
  ];
}

function polValue(key: string, { name, type, data }: RegistryValue): PolEntry {
  if (type === 'REG_DWORD' && typeof data === 'number') return polNumber(key, name, data);
  if (type === 'REG_SZ' && typeof data === 'string') return polText(key, name, data);
  if (type === 'REG_MULTI_SZ' && Array.isArray(data)) return polList(key, name, data);
  throw new Error(`${key}: ${name} is of a type that policies do not write: ${type}`);
}

function wide(text: string): Buffer {
  return Buffer.from(text, 'utf16le');
}

function dword(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
