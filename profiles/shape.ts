import { isObject, type JsonObject, type JsonValue } from '../src/json.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import type { ParsedDocument } from '../src/settings/parse.ts';
import { readLocked } from './locked.ts';
import { type PortForward, readPortForwards } from './port-forwards.ts';
import { child, describe, type Report, reportUnknown, reportValue } from './report.ts';

export const API_VERSION = 'rdctl/v1';
export const KIND = 'Profile';
/** What `prune` calls the port forwards. */
export const PORT_FORWARDS = 'portForwards';
const STATES = ['started', 'stopped', 'unmanaged'] as const;

/** Desired power; `unmanaged` leaves it alone. */
export type DesiredState = (typeof STATES)[number];

/** One document taken apart. What is absent was not written; `settings` is as written, not checked yet. */
export interface Shape {
  form: 'settings' | 'profile';
  settings: JsonObject | undefined;
  /** Where `settings` is in the document. */
  settingsPointer: '' | '/settings';
  state?: DesiredState;
  prune?: string[];
  locked?: JsonObject;
  portForwards?: PortForward[];
  metadata: { name?: string; description?: string };
}

const KEYS = ['apiVersion', 'kind', 'metadata', 'settings', 'prune', 'locked', 'state', 'portForwards'];

/** Tells the two forms apart and checks everything around the settings. */
export function readShape(parsed: ParsedDocument, report: Report): Shape {
  const { value } = parsed;
  if (!isObject(value)) {
    if (value !== undefined) report('', `a desired state is a mapping, not ${describe(value)}`, { expected: 'object' });
    return { form: 'settings', settings: undefined, settingsPointer: '', metadata: {} };
  }
  if (!('apiVersion' in value || 'kind' in value || isObject(value.settings))) {
    return { form: 'settings', settings: value, settingsPointer: '', metadata: {} };
  }
  return readProfile(value, report);
}

function readProfile(value: JsonObject, report: Report): Shape {
  expectWord(value, 'apiVersion', API_VERSION, report);
  expectWord(value, 'kind', KIND, report);
  for (const key of Object.keys(value)) {
    if (!KEYS.includes(key)) reportUnknown(child('', key), key, KEYS, report);
  }
  const shape: Shape = {
    form: 'profile',
    settings: undefined,
    settingsPointer: '/settings',
    metadata: readMetadata(value.metadata, report),
  };
  if (isObject(value.settings)) shape.settings = value.settings;
  else if (value.settings === undefined)
    report('', 'settings is missing', { expected: 'settings: { version: 19, … }' });
  else report('/settings', `settings must be a mapping, not ${describe(value.settings)}`, { expected: 'object' });
  if (value.state !== undefined) {
    const state = STATES.find((word) => word === value.state);
    if (state) shape.state = state;
    else reportValue('/state', value.state, STATES, report);
  }
  if (value.prune !== undefined) shape.prune = readPrune(value.prune, report);
  if (value.locked !== undefined) shape.locked = readLocked(value.locked, report);
  if (value.portForwards !== undefined) shape.portForwards = readPortForwards(value.portForwards, report);
  return shape;
}

function expectWord(value: JsonObject, key: string, word: string, report: Report): void {
  const found = value[key];
  if (found === word) return;
  if (found === undefined) report('', `${key} is missing`, { expected: `${key}: ${word}` });
  else reportValue(child('', key), found, [word], report);
}

function readMetadata(value: JsonValue | undefined, report: Report): Shape['metadata'] {
  if (value === undefined) return {};
  if (!isObject(value)) {
    report('/metadata', `metadata must be a mapping, not ${describe(value)}`, { expected: 'object' });
    return {};
  }
  const metadata: Shape['metadata'] = {};
  for (const [key, text] of Object.entries(value)) {
    const pointer = child('/metadata', key);
    if (key !== 'name' && key !== 'description') reportUnknown(pointer, key, ['name', 'description'], report);
    else if (typeof text === 'string') metadata[key] = text;
    else report(pointer, `${key} must be text, not ${describe(text)}`, { expected: 'string' });
  }
  return metadata;
}

/** Only maps and the port forwards can be exclusive: everything else is replaced as a whole anyway. */
function readPrune(value: JsonValue, report: Report): string[] {
  if (!Array.isArray(value)) {
    report('/prune', `prune must be a list of setting paths, not ${describe(value)}`, { expected: 'array of strings' });
    return [];
  }
  const fields: string[] = FIELDS.filter((field) => field.type.startsWith('map<')).map((field) => field.path);
  const maps = [...fields, PORT_FORWARDS];
  return value.flatMap((path, index) => {
    if (typeof path === 'string' && maps.includes(path)) return [path];
    reportValue(child('/prune', index), path, maps, report);
    return [];
  });
}
