import { describe, expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import { places } from '../../src/state/places.ts';

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

test('macOS and Windows have their own directories', () => {
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

test('a relative RDCTL_HOME is refused, an empty one is unset', () => {
  expect(() => places({ RDCTL_HOME: 'here' }, 'linux', '/home/u')).toThrow(RdError);
  expect(() => places({ RDCTL_HOME: 'here' }, 'linux', '/home/u')).toThrow('"here", which is not an absolute path');
  expect(places({ RDCTL_HOME: '' }, 'linux', '/home/u').home).toBeUndefined();
});

test('an unknown home directory is an error only where it is needed', () => {
  expect(() => places({}, 'linux', '')).toThrow('home directory of the user is not known');
  expect(places({ RDCTL_HOME: '/h' }, 'linux', '').data).toBe('/h');
});

describe('drop-in mode', () => {
  const env = { RDCTL_COMPAT: 'rancher-desktop' };

  test('has the directories of the compatible application', () => {
    expect(places(env, 'linux', '/home/u')).toMatchObject({
      dropIn: 'rancher-desktop',
      data: '/home/u/.local/share/rancher-desktop',
      config: '/home/u/.config/rancher-desktop',
      logs: '/home/u/.local/share/rancher-desktop/logs',
      state: '/home/u/.local/state/rancher-desktop',
      cache: '/home/u/.cache/rancher-desktop',
      connectionFile: '/home/u/.local/share/rancher-desktop/rd-engine.json',
      settingsFile: '/home/u/.config/rancher-desktop/settings.json',
      backendLock: '/home/u/.local/share/rancher-desktop/backend.lock',
      snapshots: '/home/u/.local/share/rancher-desktop/snapshots',
      extensions: '/home/u/.local/share/rancher-desktop/extensions',
      bin: '/home/u/.rd/bin',
    });
    expect(places(env, 'darwin', '/Users/u')).toMatchObject({
      connectionFile: '/Users/u/Library/Application Support/rancher-desktop/rd-engine.json',
      settingsFile: '/Users/u/Library/Preferences/rancher-desktop/settings.json',
      logs: '/Users/u/Library/Logs/rancher-desktop',
      bin: '/Users/u/.rd/bin',
    });
    expect(places({ ...env, LOCALAPPDATA: 'D:\\local' }, 'win32', 'C:\\Users\\u')).toMatchObject({
      connectionFile: 'D:\\local\\rancher-desktop\\rd-engine.json',
      settingsFile: 'D:\\local\\rancher-desktop\\settings.json',
      logs: 'D:\\local\\rancher-desktop\\logs',
    });
  });

  test('takes the log directory from RD_LOGS_DIR, which is otherwise ignored', () => {
    expect(places({ ...env, RD_LOGS_DIR: '/var/tmp/logs' }, 'linux', '/home/u').logs).toBe('/var/tmp/logs');
    expect(places({ ...env, RD_LOGS_DIR: 'logs' }, 'linux', '/home/u').logs).toMatch(/rancher-desktop\/logs$/);
    expect(places({ RD_LOGS_DIR: '/var/tmp/logs' }, 'linux', '/home/u').logs).toMatch(/rdctl\/logs$/);
  });

  test('knows no other application beside itself', () => {
    expect(places(env, 'linux', '/home/u').foreignConnectionFile).toBeUndefined();
  });

  test('is overridden by RDCTL_HOME', () => {
    expect(places({ ...env, RDCTL_HOME: '/h' }, 'linux', '/home/u')).toEqual(
      places({ RDCTL_HOME: '/h' }, 'linux', '/home/u'),
    );
  });

  test('is enabled by one value; any other is refused, an empty one is unset', () => {
    expect(() => places({ RDCTL_COMPAT: '1' }, 'linux', '/home/u')).toThrow(
      'the only valid value is "rancher-desktop"',
    );
    expect(places({ RDCTL_COMPAT: '' }, 'linux', '/home/u').dropIn).toBeUndefined();
  });
});
