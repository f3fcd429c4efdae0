import { describe, expect, test } from 'vitest';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { migrate, migrateWithOrigins } from '../../src/settings/migrate.ts';
import { defaultIn, firstReleaseWith, RELEASES, releaseIndex } from '../../src/settings/releases.ts';

const nameOf = (index: number) => RELEASES[index]?.name;

describe('releases', () => {
  test('are in order, and the last writes the current version', () => {
    const minors = RELEASES.map(({ name }) => Number(name.slice('1.'.length)));
    expect(minors).toEqual(Array.from({ length: 17 }, (_, index) => index + 8));
    const versions = RELEASES.map(({ settingsVersion }) => settingsVersion);
    expect(versions).toEqual([6, 8, 9, 10, 10, 11, 11, 13, 14, 14, 14, 15, 16, 16, 17, 18, 19]);
    expect(releaseIndex('1.7')).toBe(-1);
  });

  test.each([
    ['application.autoStart', '1.8'],
    ['application.extensions.allowed.list', '1.9'],
    ['application.extensions.installed', '1.10'],
    ['containers.namespace', '1.12'],
    ['experimental.containerEngine.webAssembly.enabled', '1.13'],
    ['experimental.kubernetes.options.spinkube', '1.14'],
    ['virtualMachine.type', '1.19'],
    ['virtualMachine.mount.type', '1.20'],
    ['experimental.virtualMachine.sshPortForwarder', '1.20'],
    ['experimental.virtualMachine.diskSize', '1.21'],
    ['diagnostics.connectivity.timeout', '1.21'],
    ['containerEngine.mobyStorageDriver', '1.22'],
    ['application.theme', '1.23'],
    ['application.locale', '1.24'],
  ] as const)('the first with %s is %s', (path, name) => {
    expect(nameOf(firstReleaseWith(path))).toBe(name);
  });

  test('every setting was introduced by one of them', () => {
    expect(FIELDS.filter(({ path }) => firstReleaseWith(path) === -1)).toEqual([]);
  });

  test.each([
    ['application.adminAccess', '1.8', 'linux', true],
    ['application.adminAccess', '1.9', 'linux', false],
    ['application.pathManagementStrategy', '1.8', 'win32', 'notset'],
    ['application.pathManagementStrategy', '1.9', 'win32', 'manual'],
    ['application.pathManagementStrategy', '1.9', 'darwin', 'rcfiles'],
    ['virtualMachine.type', '1.19', 'darwin', 'qemu'],
    ['virtualMachine.type', '1.20', 'darwin', 'vz'],
    ['virtualMachine.type', '1.20', 'linux', 'qemu'],
    ['virtualMachine.mount.type', '1.24', 'darwin', 'virtiofs'],
  ] as const)('the default of %s in %s on %s is %s', (path, name, platform, value) => {
    const release = RELEASES[releaseIndex(name)];
    expect(release && defaultIn(path, release, platform)).toBe(value);
  });
});

describe('a migration to a version below the newest', () => {
  const document = {
    version: 9,
    virtualMachine: { hostResolver: true },
    experimental: { virtualMachine: { type: 'qemu', networkingTunnel: false, socketVMNet: true } },
  };

  test('runs the steps up to it', () => {
    expect(migrate(document, { platform: 'linux', target: 10 })).toEqual({ ...document, version: 10 });
    expect(migrate(document, { platform: 'linux', target: 13 })).toEqual({
      version: 13,
      virtualMachine: { hostResolver: true },
      experimental: { virtualMachine: { type: 'qemu', networkingTunnel: true } },
    });
    expect(migrate(document, { platform: 'linux', target: 15, locked: true })).toEqual({
      version: 15,
      virtualMachine: { type: 'qemu' },
      experimental: { containerEngine: { webAssembly: { enabled: false } } },
    });
  });

  test('leaves a newer document alone', () => {
    expect(migrate(document, { platform: 'linux', target: 6 })).toEqual(document);
  });

  test('in two steps leads to the same as in one', () => {
    for (let target = 9; target <= 19; target += 1) {
      const half = migrate(document, { platform: 'darwin', target });
      expect(migrate(half, { platform: 'darwin' })).toEqual(migrate(document, { platform: 'darwin' }));
    }
  });

  test('reports where values came from', () => {
    const { origins } = migrateWithOrigins(document, { platform: 'linux', target: 15 });
    expect([...origins]).toEqual([['virtualMachine.type', 'experimental.virtualMachine.type']]);
  });
});
