import { expect } from 'vitest';
import { pretty, type Row } from '../row.ts';
import { bodyRows } from './bodies.ts';

const DEFAULTS = {
  noModalDialogs: false,
  preferences: {
    navItem: {
      current: 'Application',
      currentTabs: { Application: 'general', 'Virtual Machine': 'hardware', 'Container Engine': 'general' },
    },
  },
};
const HEADING = 'errors in attempt to update Transient Settings:';
const off = { power: 'stopped' } as const;

const put = (when: string, body: object, reply: string, status = 202, fact = 'api 15.5'): Row => ({
  request: 'PUT /v1/transient_settings',
  when,
  fact,
  body,
  status,
  type: 'text',
  reply,
  given: off,
});
const nav = (navItem: object) => ({ preferences: { navItem } });
const refused = (when: string, body: object, ...lines: string[]): Row => ({
  ...put(when, body, [HEADING, ...lines].join('\n'), 400),
  after: async ({ send }) => expect((await send('GET /v1/transient_settings')).body).toBe(pretty(DEFAULTS)),
});

export const transientSettingsRows: readonly Row[] = [
  {
    request: 'GET /v1/transient_settings',
    fact: 'api 15.5, 7',
    status: 200,
    type: 'json',
    reply: pretty(DEFAULTS),
    given: off,
  },
  {
    request: 'GET /v1/transient_settings',
    when: 'chosen at the start',
    fact: 'api 15.5; seed: --no-modal-dialogs',
    status: 200,
    type: 'json',
    reply: pretty({ ...DEFAULTS, noModalDialogs: true }),
    given: { ...off, noModalDialogs: true },
  },
  {
    ...put('changed', { noModalDialogs: true, ...nav({ current: 'Kubernetes' }) }, 'Updated Transient Settings'),
    after: async ({ send }) =>
      expect(JSON.parse((await send('GET /v1/transient_settings')).body)).toEqual({
        noModalDialogs: true,
        preferences: { navItem: { ...DEFAULTS.preferences.navItem, current: 'Kubernetes' } },
      }),
  },
  {
    ...put('one tab', nav({ currentTabs: { 'Virtual Machine': 'volumes' } }), 'Updated Transient Settings'),
    after: async ({ send }) =>
      expect(JSON.parse((await send('GET /v1/transient_settings')).body)).toMatchObject(
        nav({ currentTabs: { ...DEFAULTS.preferences.navItem.currentTabs, 'Virtual Machine': 'volumes' } }),
      ),
  },
  put('nothing differs', { noModalDialogs: false }, 'No changes necessary'),
  put('unknown keys', { version: 19, x: 1, ...nav({ y: 2 }) }, 'No changes necessary'),
  put(
    'equal tab',
    nav({ currentTabs: { Application: 'general' } }),
    'No changes necessary',
    202,
    'api 19.19: equal is no change',
  ),
  {
    ...put('text for a switch', { noModalDialogs: 'true' }, 'Updated Transient Settings', 202, 'api 19.19: converted'),
    loose: true,
  },
  { ...put('null', 'null' as unknown as object, 'No changes necessary', 202, 'api 8: as {}'), loose: true },
  refused('no switch', { noModalDialogs: 'yes' }, 'Invalid value for "noModalDialogs": <"yes">'),
  refused('no section', { preferences: 7 }, 'Setting "preferences" should wrap an inner object, but got <7>.'),
  refused(
    'no such page',
    nav({ current: 'Images' }),
    'preferences.navItem.current: "Images" is not a valid page name for Preferences Dialog',
  ),
  refused(
    'no such pages and tabs',
    nav({
      currentTabs: { Images: 'general', Application: 'volumes', Kubernetes: 'general', WSL: 'proxy', constructor: 'x' },
    }),
    'preferences.navItem.currentTabs: "Images" is not a valid page name for Preferences Dialog',
    'preferences.navItem.currentTabs: tab name "volumes" is not a valid tab name for "Application" Preference page',
    'preferences.navItem.currentTabs: tab name "general" is not a valid tab name for "Kubernetes" Preference page',
    'preferences.navItem.currentTabs: tab name "proxy" is not a valid tab name for "WSL" Preference page',
    'preferences.navItem.currentTabs: "constructor" is not a valid page name for Preferences Dialog',
  ),
  {
    ...refused(
      'no tabs',
      nav({ currentTabs: null }),
      'Proposed field "preferences.navItem.currentTabs" should be an object, got <null>.',
    ),
    fact: 'api 19.19: not 500',
  },
  ...bodyRows('PUT /v1/transient_settings', {
    empty: 'no settings specified in the request',
    notJson: 'error processing JSON request block',
    scalar: 'settings payload is not an object',
    array: 'settings payload is not an object',
  }),
];
