import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/json.ts';
import { fillDefaults } from '../../src/settings/defaults.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';
import { unknownKeys } from '../../src/settings/unknown-keys.ts';

const LINUX = { platform: 'linux' } as const;

describe('documents of older releases, completed on Linux', () => {
  const filled = (document: JsonObject) => fillDefaults(migrate(document, LINUX), { platform: 'linux', arch: 'x64' });
  const defaults = fillDefaults({}, { platform: 'linux', arch: 'x64' });

  test('version 4', () => {
    const document = {
      version: 4,
      kubernetes: {
        version: '1.22.11',
        memoryInGB: 8,
        numberCPUs: 4,
        port: 6445,
        containerEngine: 'moby',
        checkForExistingKimBuilder: false,
        enabled: false,
        WSLIntegrations: {},
        options: { traefik: false },
      },
      portForwarding: { includeKubernetesServices: true },
      images: { showAll: false, namespace: 'k8s.io' },
      telemetry: false,
      updater: false,
      debug: true,
    };
    expect(validateShape(document, 4)).toEqual([]);
    expect(unknownKeys(migrate(document, LINUX))).toEqual([]);
    expect(filled(document)).toEqual({
      ...defaults,
      application: { ...defaults.application, debug: true, telemetry: { enabled: false }, updater: { enabled: false } },
      virtualMachine: { ...defaults.virtualMachine, memoryInGB: 8, numberCPUs: 4 },
      kubernetes: {
        ...defaults.kubernetes,
        version: '1.22.11',
        port: 6445,
        enabled: false,
        options: { traefik: false, flannel: true },
      },
      portForwarding: { includeKubernetesServices: true },
      images: { showAll: false, namespace: 'k8s.io' },
    });
  });

  test('version 6, with extensions and an obsolete packet size', () => {
    const document = {
      version: 6,
      application: { adminAccess: true, pathManagementStrategy: 'manual' },
      extensions: { 'team/tool:3.1': true, 'team/other': false },
      experimental: {
        virtualMachine: {
          type: 'qemu',
          useRosetta: false,
          socketVMNet: true,
          mount: { type: '9p', '9p': { msizeInKB: 512, cacheMode: 'loose' } },
          networkingTunnel: true,
        },
      },
    };
    expect(validateShape(document, 6)).toEqual([]);
    expect(unknownKeys(migrate(document, LINUX)).map(({ path }) => path)).toEqual([
      'experimental.virtualMachine.mount.9p.msizeInKB',
    ]);
    expect(filled(document)).toEqual({
      ...defaults,
      application: {
        ...defaults.application,
        adminAccess: true,
        pathManagementStrategy: 'manual',
        extensions: { ...defaults.application.extensions, installed: { 'team/tool': '3.1' } },
      },
      virtualMachine: { ...defaults.virtualMachine, mount: { type: '9p' } },
      experimental: {
        ...defaults.experimental,
        virtualMachine: {
          ...defaults.experimental.virtualMachine,
          mount: { '9p': { ...defaults.experimental.virtualMachine.mount['9p'], cacheMode: 'loose' } },
        },
      },
    });
  });

  test.each([10, 11, 12, 13])('version %i', (version) => {
    const document = {
      version,
      containerEngine: {
        allowedImages: { enabled: true, locked: true, patterns: ['example.com/'] },
        name: 'containerd',
      },
      virtualMachine: { memoryInGB: 4, hostResolver: true },
      experimental: {
        virtualMachine: {
          type: 'qemu',
          socketVMNet: false,
          mount: { type: 'reverse-sshfs' },
          proxy: { port: 8080, noproxy: [] },
          networkingTunnel: false,
        },
      },
    };
    expect(validateShape(document, version)).toEqual([]);
    const settings = filled(document);
    expect(settings.containerEngine).toEqual({
      allowedImages: { enabled: true, patterns: ['example.com/'] },
      mobyStorageDriver: 'auto',
      name: 'containerd',
    });
    expect(settings.experimental.virtualMachine.proxy).toEqual({
      ...defaults.experimental.virtualMachine.proxy,
      port: 8080,
      noproxy: [],
    });
    expect(settings.virtualMachine.memoryInGB).toBe(4);
  });

  test.each([14, 16])('version %i keeps its values', (version) => {
    const mount = { mount: { type: 'virtiofs' } };
    const document =
      version === 14
        ? { version, experimental: { virtualMachine: { type: 'vz', useRosetta: true, ...mount } } }
        : { version, virtualMachine: { type: 'vz', useRosetta: true, ...mount } };
    expect(validateShape(document, version)).toEqual([]);
    expect(filled(document).virtualMachine).toEqual({
      memoryInGB: 2,
      numberCPUs: 2,
      type: 'vz',
      useRosetta: true,
      mount: { type: 'virtiofs' },
    });
  });
});
