import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import type { PlistValue } from './python.ts';
import type { RegistryReading, RegistryValue } from './registry.ts';

/** Leaves by the names that lead to them, each as JSON; an empty object is a leaf. Names like `__proto__` are ordinary. */
export type Flat = Map<string, string>;

/** The settings as a property list represents them. */
export function flatSettings(settings: JsonValue, above: readonly string[] = [], flat: Flat = new Map()): Flat {
  if (isObject(settings) && Object.keys(settings).length > 0) {
    for (const [name, value] of Object.entries(settings)) flatSettings(value, [...above, name], flat);
  } else flat.set(JSON.stringify(above), JSON.stringify(isObject(settings) ? ['dict', []] : typed(settings)));
  return flat;
}

function typed(value: JsonValue): PlistValue {
  if (typeof value === 'boolean') return ['boolean', value];
  if (typeof value === 'number') return ['integer', String(value)];
  if (typeof value === 'string') return ['string', value];
  if (Array.isArray(value)) return ['array', value.map(typed)];
  throw new Error('settings of a profile hold no such value');
}

/** A property list by its leaves. */
export function flatPlist(value: PlistValue, above: readonly string[] = [], flat: Flat = new Map()): Flat {
  if (value[0] === 'dict' && value[1].length > 0) {
    for (const [name, entry] of value[1]) flatPlist(entry, [...above, name], flat);
  } else flat.set(JSON.stringify(above), JSON.stringify(value));
  return flat;
}

/** The settings as the registry represents them, including the key of a profile. */
export function registrySettings(
  settings: JsonObject,
  key: string,
  reading: RegistryReading = new Map(),
): RegistryReading {
  const values = new Map<string, RegistryValue>();
  reading.set(key, values);
  for (const [name, value] of Object.entries(settings)) {
    if (isObject(value)) registrySettings(value, `${key}\\${name}`, reading);
    else values.set(name, registryForm(value));
  }
  return reading;
}

function registryForm(value: JsonValue): RegistryValue {
  if (typeof value === 'boolean') return { dword: value ? 1 : 0 };
  if (typeof value === 'number') return { dword: value };
  if (typeof value === 'string') return { text: value };
  if (Array.isArray(value)) return { texts: value.map(String) };
  throw new Error('settings of a profile hold no such value');
}
