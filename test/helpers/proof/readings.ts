import { isObject } from '../../../src/json.ts';
import { type Flat, flatPlist, flatSettings } from './expected.ts';
import type { PlistValue, Read } from './python.ts';

/** The settings in a configuration profile: forced preferences in the domain of the part that the profile names. */
export function payloadSettings(value: PlistValue): PlistValue {
  const payloads = member(value, 'PayloadContent');
  const [payload, ...others] = payloads[0] === 'array' ? payloads[1] : [];
  if (!payload || others.length > 0) throw new Error('not one payload');
  const domains = member(payload, 'PayloadContent');
  const [[domain, managed] = [], ...more] = domains[0] === 'dict' ? domains[1] : [];
  const [, identifier] = member(value, 'PayloadIdentifier');
  const [, part] = /^io\.rancherdesktop\.profile\.(locked|defaults)$/.exec(domain ?? '') ?? [];
  if (!managed || more.length > 0 || part === undefined || identifier !== `io.rdctl.profile.${part}`) {
    throw new Error('not one domain of the application');
  }
  const forced = member(managed, 'Forced');
  const [only, ...rest] = forced[0] === 'array' ? forced[1] : [];
  if (!only || rest.length > 0) throw new Error('not one set of forced preferences');
  return member(only, 'mcx_preference_settings');
}

function member(value: PlistValue, name: string): PlistValue {
  const found = value[0] === 'dict' ? value[1].find(([key]) => key === name)?.[1] : undefined;
  if (!found) throw new Error(`no ${name}`);
  return found;
}

/** A property list as Python read it, by the leaves of its settings. */
export function flatRead(read: Read<PlistValue>, settingsIn: (value: PlistValue) => PlistValue): Flat {
  return 'value' in read ? flatPlist(settingsIn(read.value)) : new Map([['error', read.error]]);
}

/** JSON as Python read it, by its leaves. */
export function flatJson(read: Read<unknown>): Flat {
  if ('error' in read) return new Map([['error', read.error]]);
  if (!isObject(read.value)) throw new Error('not an object');
  return flatSettings(read.value);
}
