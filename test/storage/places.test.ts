import { expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import { places } from '../../src/storage/places.ts';

test('Linux follows the XDG directories', () => {
  const env = {
    XDG_DATA_HOME: '/x/data',
    XDG_CONFIG_HOME: '/x/config',
    XDG_STATE_HOME: '/x/state',
    XDG_CACHE_HOME: '/x/cache',
  };
  expect(places(env, 'linux', '/home/u')).toMatchObject({
    connectionFile: '/x/data/rdctl/app-engine.json',
    settingsFile: '/x/config/rdctl/settings.json',
    stateFile: '/x/state/rdctl/state.json',
    logs: '/x/state/rdctl/logs',
    cache: '/x/cache/rdctl',
    foreignConnectionFile: '/x/data/rancher-desktop/rd-engine.json',
  });
});

test.each([undefined, '', 'relative/path'])('an XDG variable of %j counts as unset', (value) => {
  const env = { XDG_DATA_HOME: value, XDG_CONFIG_HOME: value, XDG_STATE_HOME: value };
  expect(places(env, 'linux', '/home/u')).toMatchObject({
    data: '/home/u/.local/share/rdctl',
    config: '/home/u/.config/rdctl',
    state: '/home/u/.local/state/rdctl',
    cache: '/home/u/.cache/rdctl',
  });
});

test('macOS and Windows have their own places', () => {
  expect(places({}, 'darwin', '/Users/u')).toMatchObject({
    connectionFile: '/Users/u/Library/Application Support/rdctl/app-engine.json',
    settingsFile: '/Users/u/Library/Preferences/rdctl/settings.json',
    logs: '/Users/u/Library/Logs/rdctl',
    foreignConnectionFile: '/Users/u/Library/Application Support/rancher-desktop/rd-engine.json',
  });
  expect(places({ LOCALAPPDATA: 'D:\\local' }, 'win32', 'C:\\Users\\u')).toMatchObject({
    connectionFile: 'D:\\local\\rdctl\\app-engine.json',
    settingsFile: 'D:\\local\\rdctl\\settings.json',
  });
  expect(places({}, 'win32', 'C:\\Users\\u').data).toBe('C:\\Users\\u\\AppData\\Local\\rdctl');
});

test.each(['linux', 'darwin'] as const)('RDCTL_HOME moves everything of ours below one directory on %s', (platform) => {
  const here = places({ RDCTL_HOME: '/opt/one/', XDG_DATA_HOME: '/x' }, platform, '/home/u');
  expect(here.home).toBe('/opt/one');
  expect(here.foreignConnectionFile).toBeUndefined();
  for (const path of Object.values(here)) expect(`${path}/`).toMatch(/^\/opt\/one\//);
});

test('a relative RDCTL_HOME is refused, an empty one is none', () => {
  expect(() => places({ RDCTL_HOME: 'here' }, 'linux', '/home/u')).toThrow(RdError);
  expect(() => places({ RDCTL_HOME: 'here' }, 'linux', '/home/u')).toThrow('"here", which is not an absolute path');
  expect(places({ RDCTL_HOME: '' }, 'linux', '/home/u').home).toBeUndefined();
});

test('an unknown home directory is an error only where it is needed', () => {
  expect(() => places({}, 'linux', '')).toThrow('home directory of the user is not known');
  expect(places({ RDCTL_HOME: '/h' }, 'linux', '').data).toBe('/h');
});
