import { describe, expect, test } from 'vitest';
import { type LoadContext, loadDesired } from '../../profiles/document/load.ts';
import type { JsonObject } from '../../src/json.ts';
import { formatFinding } from '../../src/settings/issue.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { unknownKeys } from '../../src/settings/unknown-keys.ts';

async function load(document: JsonObject | string, context: Partial<LoadContext> = {}) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  return loadDesired(['-'], {
    cwd: '/',
    env: {},
    platform: 'linux',
    arch: 'x64',
    readStdin: async () => Buffer.from(text),
    ...context,
  });
}

const NOPROXY = ['0.0.0.0/8', '10.0.0.0/8', '127.0.0.0/8'];
const NINE_P = { securityModel: 'none', protocolVersion: '9p2000.L', cacheMode: 'mmap' };
const GROUPED = {
  adminAccess: false,
  debug: true,
  pathManagementStrategy: 'rcfiles',
  telemetry: { enabled: false },
  updater: { enabled: true },
  autoStart: false,
  startInBackground: false,
  hideNotificationIcon: false,
  window: { quitOnClose: true },
};
const CLUSTER = {
  version: '1.27.9',
  port: 6444,
  enabled: false,
  options: { traefik: false, flannel: true },
  ingress: { localhostOnly: false },
};
const EXTENSIONS = { allowed: { enabled: false, list: [] }, installed: { 'example/tool': '1.4' } };
const PROXY = { enabled: false, address: '', password: '', port: 3128, username: '', noproxy: NOPROXY };

/** Complete documents, as the application of that version prints its settings on Linux. */
const COMPLETE: Record<string, JsonObject> = {
  'version 3': {
    version: 3,
    kubernetes: { version: '1.21.5', memoryInGB: 3, numberCPUs: 2, port: 6443, containerEngine: 'moby' },
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'k8s.io' },
    telemetry: false,
    updater: true,
    debug: true,
  },
  'version 4, early': {
    version: 4,
    kubernetes: {
      version: '1.22.9',
      memoryInGB: 3,
      numberCPUs: 2,
      port: 6444,
      containerEngine: 'moby',
      checkForExistingKimBuilder: false,
      enabled: false,
      WSLIntegrations: {},
      options: { traefik: false },
    },
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'k8s.io' },
    telemetry: false,
    updater: true,
    debug: true,
  },
  'version 4, late': {
    version: 4,
    containerEngine: { imageAllowList: { enabled: false, locked: false, patterns: [] } },
    kubernetes: {
      version: '1.24.3',
      memoryInGB: 3,
      numberCPUs: 2,
      port: 6444,
      containerEngine: 'moby',
      checkForExistingKimBuilder: false,
      enabled: false,
      WSLIntegrations: {},
      options: { traefik: false, flannel: true },
      suppressSudo: true,
      hostResolver: true,
      experimental: { socketVMNet: false },
    },
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'k8s.io' },
    telemetry: false,
    updater: true,
    debug: true,
    pathManagementStrategy: 'notset',
    diagnostics: { showMuted: false, mutedChecks: { SOME_CHECK: true } },
  },
  'version 6': {
    version: 6,
    application: GROUPED,
    containerEngine: { allowedImages: { enabled: false, patterns: [] }, name: 'moby' },
    virtualMachine: { memoryInGB: 3, numberCPUs: 2, hostResolver: true },
    WSL: { integrations: {} },
    kubernetes: CLUSTER,
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'k8s.io' },
    diagnostics: { showMuted: false, mutedChecks: {} },
    extensions: { 'example/tool:1.4': true, 'example/other:2': false },
    experimental: {
      virtualMachine: {
        type: 'qemu',
        useRosetta: false,
        socketVMNet: true,
        mount: { type: 'reverse-sshfs', '9p': { ...NINE_P, msizeInKB: 128 } },
        networkingTunnel: false,
      },
    },
  },
  'version 10': {
    version: 10,
    application: { ...GROUPED, extensions: EXTENSIONS },
    containerEngine: { allowedImages: { enabled: false, locked: false, patterns: [] }, name: 'moby' },
    virtualMachine: { memoryInGB: 3, numberCPUs: 2, hostResolver: true },
    WSL: { integrations: {} },
    kubernetes: CLUSTER,
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'k8s.io' },
    containers: { showAll: true, namespace: 'default' },
    diagnostics: { showMuted: false, mutedChecks: {} },
    experimental: {
      virtualMachine: {
        type: 'qemu',
        useRosetta: false,
        socketVMNet: false,
        mount: { type: 'reverse-sshfs', '9p': { ...NINE_P, msizeInKib: 128 } },
        networkingTunnel: false,
        proxy: PROXY,
      },
    },
  },
  'version 14': {
    version: 14,
    application: { ...GROUPED, extensions: EXTENSIONS },
    containerEngine: { allowedImages: { enabled: false, patterns: [] }, name: 'moby' },
    virtualMachine: { memoryInGB: 3, numberCPUs: 2 },
    WSL: { integrations: {} },
    kubernetes: CLUSTER,
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'default' },
    containers: { showAll: true, namespace: 'default' },
    diagnostics: { showMuted: false, mutedChecks: {} },
    experimental: {
      containerEngine: { webAssembly: { enabled: false } },
      kubernetes: { options: { spinkube: false } },
      virtualMachine: {
        type: 'qemu',
        useRosetta: false,
        mount: { type: 'reverse-sshfs', '9p': { ...NINE_P, msizeInKib: 128 } },
        proxy: PROXY,
      },
    },
  },
  'version 18': {
    version: 18,
    application: { ...GROUPED, extensions: EXTENSIONS, theme: 'dark' },
    containerEngine: { allowedImages: { enabled: false, patterns: [] }, mobyStorageDriver: 'auto', name: 'moby' },
    virtualMachine: {
      memoryInGB: 3,
      numberCPUs: 2,
      type: 'qemu',
      useRosetta: false,
      mount: { type: 'reverse-sshfs' },
    },
    WSL: { integrations: {} },
    kubernetes: CLUSTER,
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: 'default' },
    containers: { showAll: true, namespace: 'default' },
    diagnostics: { showMuted: false, mutedChecks: {}, connectivity: { interval: 5000, timeout: 5000 } },
    experimental: {
      containerEngine: { webAssembly: { enabled: false } },
      kubernetes: { options: { spinkube: false } },
      virtualMachine: {
        diskSize: '100GiB',
        mount: { '9p': { ...NINE_P, msizeInKib: 128 } },
        proxy: { ...PROXY, noproxy: NOPROXY },
        sshPortForwarder: true,
      },
    },
  },
};

describe('a complete document of an older application is a valid profile', () => {
  test.each(Object.entries(COMPLETE))('%s', async (_, document) => {
    const { desired, findings, documents } = await load(document);
    expect(findings).toEqual([]);
    expect(documents).toEqual([{ file: '<stdin>', form: 'settings', version: document.version }]);
    const settings = desired?.request.settings ?? {};
    expect(settings.version).toBe(19);
    // Nothing is left that a service would not know.
    expect(unknownKeys(settings)).toEqual([]);
    const expected: Record<string, unknown> = {
      'application.debug': true,
      'application.telemetry.enabled': false,
      'containerEngine.name': 'moby',
      'virtualMachine.memoryInGB': 3,
    };
    for (const [path, value] of Object.entries(expected)) expect(leafAt(settings, path), path).toEqual(value);
    if (Number(document.version) >= 6) {
      expect(leafAt(settings, 'application.extensions.installed')).toEqual({ 'example/tool': '1.4' });
    }
  });

  test('and inside a profile', async () => {
    for (const settings of Object.values(COMPLETE)) {
      const { findings } = await load({ apiVersion: 'rdctl/v1', kind: 'Profile', settings });
      expect(findings).toEqual([]);
    }
  });

  test('null removes entries in older versions too', async () => {
    const { desired, findings } = await load({
      version: 8,
      extensions: { 'example/tool': null },
      diagnostics: { mutedChecks: { ONE: null } },
    });
    expect(findings).toEqual([]);
    expect(desired?.request.settings).toMatchObject({
      application: { extensions: { installed: { 'example/tool': null } } },
      diagnostics: { mutedChecks: { ONE: null } },
    });
  });
});

describe('refused, in the terms of its own version', () => {
  test.each<[string, string, string[]]>([
    [
      'a field of a later version of the same shape',
      'version: 16\ncontainerEngine:\n  mobyStorageDriver: auto\n',
      [
        '<stdin>:3:3: "containerEngine.mobyStorageDriver" needs settings version 17; the document says 16 (/containerEngine/mobyStorageDriver)',
      ],
    ],
    [
      'a field of a much later version',
      'version: 10\ncontainerEngine:\n  mobyStorageDriver: auto\n',
      [
        '<stdin>:3:3: "containerEngine.mobyStorageDriver" needs settings version 17; the document says 10 (/containerEngine/mobyStorageDriver)',
      ],
    ],
    [
      'a section of a later version, once',
      'version: 4\ncontainers: { showAll: true, namespace: a }\n',
      ['<stdin>:2:1: "containers" needs settings version 10; the document says 4 (/containers)'],
    ],
    [
      'a misspelt name that only that version has',
      'version: 4\nkubernetes: { supressSudo: true }\n',
      ['<stdin>:2:15: unknown setting "kubernetes.supressSudo" (/kubernetes/supressSudo); did you mean suppressSudo?'],
    ],
    [
      'a name at the place of another version',
      'version: 4\nvirtualMachine: { suppressSudo: true }\n',
      [
        '<stdin>:2:19: unknown setting "virtualMachine.suppressSudo" (/virtualMachine/suppressSudo); did you mean kubernetes.suppressSudo?',
      ],
    ],
    [
      'a name near to what came later is not led there',
      'version: 10\nexperimental: { virtualMachine: { diskSise: 1GiB } }\n',
      ['<stdin>:2:35: unknown setting "experimental.virtualMachine.diskSise" (/experimental/virtualMachine/diskSise)'],
    ],
    [
      'all mistakes at once, in the order of the text',
      'version: 14\nkubernetes: { port: 0, enabld: true }\nexperimental: { virtualMachine: { proxy: { noproxy: ["a b"] } } }\n',
      [
        '<stdin>:2:21: "kubernetes.port" cannot be 0 (/kubernetes/port); expected at least 1',
        '<stdin>:2:24: unknown setting "kubernetes.enabld" (/kubernetes/enabld); did you mean enabled?',
        expect.stringContaining('(/experimental/virtualMachine/proxy/noproxy'),
      ],
    ],
    [
      'a value that a list has not',
      'version: 4\nkubernetes: { containerEngine: mobi }\n',
      [
        '<stdin>:2:32: "kubernetes.containerEngine" cannot be mobi (/kubernetes/containerEngine); expected one of "containerd", "moby", "docker"; did you mean moby?',
      ],
    ],
  ])('%s', async (_, text, lines) => {
    const { desired, findings } = await load(text, { platform: 'win32' });
    expect(desired).toBeUndefined();
    expect(findings.map(formatFinding)).toEqual(lines);
  });

  test('sixteen thousand unknown names of an older version', async () => {
    const names = Array.from({ length: 16_000 }, (_, index) => [`name${index}`, index]);
    const { findings } = await load({ version: 10, kubernetes: Object.fromEntries(names) });
    expect(findings).toHaveLength(16_000);
  });
});
