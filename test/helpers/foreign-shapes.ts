import type { JsonObject } from '../../src/json.ts';
import { leafAt, removeLeaf, setLeaf } from '../../src/settings/leaf-paths.ts';

/** Settings versions that releases wrote, and a future one. */
export const FOREIGN_VERSIONS = [10, 14, 16, 18, 19, 25] as const;
export type ForeignVersion = (typeof FOREIGN_VERSIONS)[number];

const NOPROXY = ['10.0.0.0/8', '192.168.0.0/16'];
const NINE_P = { securityModel: 'none', protocolVersion: '9p2000.L', msizeInKib: 128, cacheMode: 'mmap' };
const PROXY = { enabled: false, address: '', password: '', port: 3128, username: '', noproxy: NOPROXY };

/**
 * Complete settings as an application of that version keeps them on Linux (settings facts, 1.4 and 1.7), written from the
 * facts and not by our own migration, which is under test.
 */
export function foreignSettings(version: ForeignVersion): JsonObject {
  const old = version < 16;
  const application: JsonObject = {
    adminAccess: false,
    debug: false,
    extensions: { allowed: { enabled: false, list: [] }, installed: {} },
    pathManagementStrategy: 'rcfiles',
    telemetry: { enabled: true },
    updater: { enabled: false },
    autoStart: false,
    startInBackground: false,
    hideNotificationIcon: false,
    window: { quitOnClose: false },
    ...(version >= 18 ? { theme: 'system' } : {}),
    ...(version >= 19 ? { locale: 'en-us' } : {}),
    ...(version >= 25 ? { accentColour: 'teal' } : {}),
  };
  return {
    version,
    application,
    containerEngine: {
      allowedImages: { enabled: false, ...(version === 10 ? { locked: false } : {}), patterns: [] },
      ...(version >= 17 ? { mobyStorageDriver: 'auto' } : {}),
      name: 'moby',
    },
    virtualMachine: {
      memoryInGB: 4,
      numberCPUs: 2,
      ...(version === 10 ? { hostResolver: true } : {}),
      ...(old ? {} : { type: 'qemu', useRosetta: false, mount: { type: 'reverse-sshfs' } }),
    },
    WSL: { integrations: {} },
    kubernetes: {
      version: '1.30.4',
      port: 6443,
      enabled: true,
      options: { traefik: true, flannel: true },
      ingress: { localhostOnly: false },
    },
    portForwarding: { includeKubernetesServices: false },
    images: { showAll: true, namespace: version === 10 ? 'k8s.io' : 'default' },
    ...(version === 10 ? {} : { containers: { showAll: true, namespace: 'default' } }),
    diagnostics: {
      showMuted: false,
      mutedChecks: {},
      ...(version >= 16 ? { connectivity: { interval: 5000, timeout: 5000 } } : {}),
    },
    experimental: {
      ...(version === 10
        ? {}
        : {
            containerEngine: { webAssembly: { enabled: false } },
            kubernetes: { options: { spinkube: false } },
          }),
      virtualMachine: {
        ...(old ? { type: 'qemu', useRosetta: false } : { diskSize: '100GiB', sshPortForwarder: true }),
        ...(version === 10 ? { socketVMNet: false, networkingTunnel: false } : {}),
        mount: { ...(old ? { type: 'reverse-sshfs' } : {}), '9p': NINE_P },
        proxy: PROXY,
      },
    },
    ...(version >= 25 ? { quantum: { enabled: true, qubits: 8 } } : {}),
  };
}

/** Moves between these versions: since which version, from where, to where (settings facts, 1.3). */
const MOVES: readonly [number, string, string][] = [
  [15, 'experimental.virtualMachine.type', 'virtualMachine.type'],
  [15, 'experimental.virtualMachine.useRosetta', 'virtualMachine.useRosetta'],
  [16, 'experimental.virtualMachine.mount.type', 'virtualMachine.mount.type'],
];

/** A payload of an older version in the format of a newer one. */
export function migratedPayload(payload: JsonObject, to: number): JsonObject {
  const copy = structuredClone(payload);
  const from = Number(copy.version);
  for (const [since, old, path] of MOVES) {
    const value = from < since && to >= since ? leafAt(copy, old) : undefined;
    if (value === undefined) continue;
    removeLeaf(copy, old);
    setLeaf(copy, path, value);
  }
  const driver = 'containerEngine.mobyStorageDriver';
  // A bug of the application: an unrelated call resets the storage driver.
  if (from <= 16 && to > 16 && leafAt(copy, driver) === undefined) setLeaf(copy, driver, 'auto');
  copy.version = to;
  return copy;
}
