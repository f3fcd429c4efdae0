import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Platform } from '../settings/field.ts';
import { own } from '../settings/own.ts';

/** What a window of the application remembers while it runs; kept in memory alone (api facts, 15.5). */
interface TransientSettings {
  noModalDialogs: boolean;
  preferences: { navItem: { current: string; currentTabs: Record<string, string> } };
}

type TransientUpdate =
  /** One line for each problem; nothing is changed. */
  { kind: 'refused'; lines: string[] } | { kind: 'unchanged' } | { kind: 'changed'; settings: TransientSettings };

/** The record of this service, with its one way to change. */
export interface TransientStore {
  read(): TransientSettings;
  update(payload: JsonObject): TransientUpdate;
}

/** Pages of the preferences. */
export const PAGES: readonly string[] = ['Application', 'WSL', 'Virtual Machine', 'Container Engine', 'Kubernetes'];

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

/** What a body would do. Unknown members are passed over; equal values are no change. Pure. */
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

/** Walks the members that are known, in the order in which they were sent. */
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

/** Puts the tabs that may be there into `current` and returns a line for each that may not. */
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
