import { describe, expect, test } from 'vitest';
import type { RegistryKey } from '../../profiles/formats/registry.ts';
import { registryPolicy } from '../../profiles/policies/registry-policy.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { membersOfVersion } from '../../src/settings/members.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';

// A profile in the registry means the same as the profile as a file, whatever version it was written for.

/** As an administrator may have typed it: in any case, with the types of the registry. */
function asRegistry(name: string, settings: JsonObject): RegistryKey {
  const key: RegistryKey = { name, values: [], keys: [] };
  for (const [each, value] of Object.entries(settings)) {
    const typed = each.includes('/') || each.includes(' ') ? each : each.toUpperCase();
    if (isObject(value)) key.keys.push(asRegistry(typed, value));
    else if (typeof value === 'boolean') key.values.push({ name: typed, type: 'REG_DWORD', data: Number(value) });
    else if (typeof value === 'number') key.values.push({ name: typed, type: 'REG_DWORD', data: value });
    else if (typeof value === 'string') key.values.push({ name: typed, type: 'REG_SZ', data: value });
    else if (Array.isArray(value)) key.values.push({ name: typed, type: 'REG_MULTI_SZ', data: value.map(String) });
  }
  return key;
}

const DOCUMENTS: readonly JsonObject[] = [
  {
    version: 4,
    kubernetes: {
      version: '1.22.11',
      memoryInGB: 8,
      numberCPUs: 4,
      port: 6445,
      containerEngine: 'moby',
      enabled: false,
      suppressSudo: true,
      WSLIntegrations: { 'UBUNTU 22.04': true },
      options: { traefik: false, flannel: true },
    },
    portForwarding: { includeKubernetesServices: true },
    images: { showAll: false, namespace: 'k8s.io' },
    telemetry: false,
    updater: true,
    debug: true,
    pathManagementStrategy: 'manual',
    containerEngine: { imageAllowList: { enabled: true, patterns: ['a', 'b'] } },
  },
  {
    version: 6,
    application: { adminAccess: true, telemetry: { enabled: false }, window: { quitOnClose: true } },
    extensions: { 'example/ext:1.2': true, 'example/other': false },
    virtualMachine: { memoryInGB: 3 },
    experimental: { virtualMachine: { type: 'qemu', useRosetta: false, mount: { type: '9p' } } },
  },
  { version: 8, extensions: { 'example/ext': '1.2' }, application: { pathManagementStrategy: 'manual' } },
  {
    version: 14,
    experimental: { virtualMachine: { type: 'vz', useRosetta: true, mount: { type: 'virtiofs' } } },
    WSL: { integrations: { 'DEBIAN OF MINE': false } },
  },
  {
    version: 16,
    containers: { showAll: false, namespace: 'team' },
    application: { extensions: { allowed: { enabled: true, list: ['example/'] } } },
  },
];

describe.each(DOCUMENTS.map((document) => [document.version, document] as const))('version %s', (version, document) => {
  test('loses nothing', () => {
    expect(validateShape(document, Number(version))).toEqual([]);
    const read = registryPolicy('HKLM\\X', asRegistry('X', document));
    expect(read).toMatchObject({ problems: [], ignored: [] });
    // Map entries that enable an extension are booleans there, too.
    expect(read?.settings).toEqual(document);
    const options = { platform: 'win32', partial: true } as const;
    expect(migrate(read?.settings ?? {}, options)).toEqual(migrate(document, options));
  });
});

test('the newest version has only current names', () => {
  const names = membersOfVersion(19).map(({ name }) => name);
  expect(names).toContain('containerEngine');
  expect(names).not.toContain('telemetry');
  expect(membersOfVersion(4).map(({ name }) => name)).toContain('telemetry');
});
