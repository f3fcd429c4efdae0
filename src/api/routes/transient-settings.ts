import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { indentedJson, isObject, type JsonObject, type JsonValue } from '../../json.ts';
import type { Platform } from '../../settings/field.ts';
import { own } from '../../settings/own.ts';
import { bytesOf, settingsPayload } from '../body.ts';
import { type JsonSchema, withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** Pages of the preferences. */
const PAGES: readonly string[] = ['Application', 'WSL', 'Virtual Machine', 'Container Engine', 'Kubernetes'];

/** The window state of the compatible application; kept in memory only. */
interface TransientSettings {
  noModalDialogs: boolean;
  preferences: { navItem: { current: string; currentTabs: Record<string, string> } };
}

type TransientUpdate =
  /** `refused` has one line per problem, and nothing was changed. */
  { kind: 'refused'; lines: string[] } | { kind: 'unchanged' } | { kind: 'changed'; settings: TransientSettings };

/** The transient settings of this service. */
export interface TransientStore {
  read(): TransientSettings;
  update(payload: JsonObject): TransientUpdate;
}

export function createTransientStore(platform: Platform, noModalDialogs: boolean): TransientStore {
  let settings: TransientSettings = {
    noModalDialogs,
    preferences: { navItem: { current: 'Application', currentTabs: firstTabs(platform) } },
  };
  return {
    read: () => settings,
    update(payload) {
      const update = decideTransient(payload, settings, platform);
      if (update.kind === 'changed') settings = update.settings;
      return update;
    },
  };
}

/** Decides the effect of a body. Unknown members are ignored; equal values are no change. */
function decideTransient(payload: JsonObject, current: TransientSettings, platform: Platform): TransientUpdate {
  const draft = structuredClone(current);
  const { navItem } = draft.preferences;
  const lines: string[] = [];
  members(payload, '', lines, {
    noModalDialogs(value, path) {
      const wanted = booleanOf(value);
      if (wanted === undefined) lines.push(`Invalid value for "${path}": <${JSON.stringify(value)}>`);
      else draft.noModalDialogs = wanted;
    },
    preferences: {
      navItem: {
        current(value, path) {
          if (typeof value === 'string' && PAGES.includes(value)) navItem.current = value;
          else lines.push(`${path}: "${shown(value)}" is not a valid page name for Preferences Dialog`);
        },
        currentTabs(value, path) {
          if (isObject(value)) lines.push(...putTabs(value, navItem.currentTabs, path, tabsOf(platform)));
          else lines.push(`Proposed field "${path}" should be an object, got <${shown(value)}>.`);
        },
      },
    },
  });
  if (lines.length > 0) return { kind: 'refused', lines };
  return JSON.stringify(draft) === JSON.stringify(current)
    ? { kind: 'unchanged' }
    : { kind: 'changed', settings: draft };
}

type Member = ((value: JsonValue, path: string) => void) | { [name: string]: Member };

/** Visits the known members, in the order in which they were sent. */
function members(object: JsonObject, above: string, lines: string[], known: Record<string, Member>): void {
  for (const name of Object.keys(object)) {
    const member = Object.hasOwn(known, name) ? known[name] : undefined;
    if (member === undefined) continue;
    const path = `${above}${name}`;
    const value = own(object, name) ?? null;
    if (typeof member === 'function') member(value, path);
    else if (isObject(value)) members(value, `${path}.`, lines, member);
    else lines.push(`Setting "${path}" should wrap an inner object, but got <${shown(value)}>.`);
  }
}

/** Puts the allowed tabs into `current`, and returns a line for each of the others. */
function putTabs(
  tabs: JsonObject,
  current: Record<string, string>,
  path: string,
  allowed: ReadonlyMap<string, readonly string[]>,
): string[] {
  return Object.keys(tabs).flatMap((page) => {
    if (!PAGES.includes(page)) return [`${path}: "${page}" is not a valid page name for Preferences Dialog`];
    const tab = own(tabs, page);
    if (typeof tab === 'string' && (tab === current[page] || allowed.get(page)?.includes(tab))) {
      current[page] = tab;
      return [];
    }
    return [`${path}: tab name "${shown(tab ?? null)}" is not a valid tab name for "${page}" Preference page`];
  });
}

function booleanOf(value: JsonValue): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (value === 'true') return true;
  return value === 'false' ? false : undefined;
}

function shown(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function firstTabs(platform: Platform): Record<string, string> {
  return {
    Application: 'general',
    'Virtual Machine': 'hardware',
    'Container Engine': 'general',
    ...(platform === 'win32' ? { WSL: 'integrations' } : {}),
  };
}

function tabsOf(platform: Platform): ReadonlyMap<string, readonly string[]> {
  return new Map([
    ['Application', ['general', 'behavior', 'environment']],
    ['Container Engine', ['general', 'allowed-images']],
    platform === 'win32'
      ? ['WSL', ['integrations', 'network', 'proxy']]
      : ['Virtual Machine', ['hardware', 'volumes', ...(platform === 'darwin' ? ['network', 'emulation'] : [])]],
  ]);
}

/** The schema of the record; with `whole` false, of any part of it. */
function recordSchema(whole: boolean): JsonSchema {
  const section = (properties: Record<string, JsonSchema>): JsonSchema => ({
    type: 'object',
    ...(whole ? { required: Object.keys(properties) } : {}),
    properties,
  });
  return section({
    noModalDialogs: { description: 'Suppress dialogs.', type: 'boolean' },
    preferences: section({
      navItem: section({
        current: { description: 'Current page.', enum: PAGES },
        currentTabs: {
          description: 'Current tab of each page. The available tabs depend on the system.',
          type: 'object',
          propertyNames: { enum: PAGES },
          additionalProperties: { type: 'string' },
        },
      }),
    }),
  });
}

const GET_DOC = withDoc({
  scope: 'read',
  summary: 'Get the transient settings of the application windows',
  replies: { 200: { description: 'always', body: 'json', schema: recordSchema(true) } },
});
const PUT_DOC = withDoc({
  scope: 'write',
  summary: 'Change the transient settings of the application windows',
  description: 'Kept in memory until the service stops. Omitted members stay unchanged.',
  body: { description: 'Any part of the transient settings', required: true, schema: recordSchema(false) },
  replies: {
    202: { description: 'accepted', body: 'text', example: TEXTS.transientUpdated },
    400: { description: 'no settings, or invalid ones: a heading and one line per error', body: 'text' },
  },
});

/** The port of the transient settings routes. */
export interface TransientPort {
  transient: TransientStore;
}

/** Registers `/v1/transient_settings`, for clients with windows. This service has no windows, and only stores the values. */
export function transientSettingsRoutes(app: FastifyInstance, { transient }: TransientPort): void {
  app.get('/v1/transient_settings', GET_DOC, (_request, reply) => {
    reply.type(JSON_TYPE).send(indentedJson(transient.read()));
  });

  app.put('/v1/transient_settings', PUT_DOC, (request, reply) => {
    const update = transient.update(settingsPayload(bytesOf(request)));
    if (update.kind === 'refused') {
      throw new RdError('ERR_SETTINGS_INVALID', [TEXTS.transientErrors, ...update.lines].join('\n'));
    }
    const text = update.kind === 'changed' ? TEXTS.transientUpdated : TEXTS.transientUnchanged;
    reply.code(202).type(TEXT_TYPE).send(text);
  });
}
