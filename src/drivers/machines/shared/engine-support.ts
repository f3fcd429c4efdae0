import type { SettingPath } from '../../../settings/settings.gen.ts';
import type { Support } from '../../driver.ts';

export const ENFORCED: Support = { level: 'enforced' };
const STORED: Support = { level: 'stored' };

const PROXY = 'only the Windows subsystem for Linux uses this proxy';
/** Implemented by the service, in user files. */
const USER_FILES_SUPPORT: Support = { level: 'enforced', reason: 'with RDCTL_HOME, user files are not changed' };

/** Returns the support of a setting that the driver refuses. `accepts`: values that request nothing. */
export function unsupported(reason: string, ...accepts: (boolean | number | string)[]): Support {
  return accepts.length > 0 ? { level: 'unsupported', reason, accepts } : { level: 'unsupported', reason };
}

function stored(reason: string): Support {
  return { level: 'stored', reason };
}

/** Release of dockerd that can pull, build and push with images in containerd. */
const SNAPSHOTTER_SINCE = 24;

/**
 * Returns the support with that dockerd.
 * @param version `26.1.5`, or of its Debian package; undefined when it is unknown.
 */
export function storageSupport(version: string | undefined): { 'containerEngine.mobyStorageDriver': Support } {
  const major = Number(/^\d+(?=\.)/.exec(version ?? '')?.[0] ?? 0);
  const known = version === undefined ? 'its version is unknown' : `it is dockerd ${version}`;
  const needs = `the containerd snapshotter needs dockerd ${SNAPSHOTTER_SINCE} or later`;
  return {
    'containerEngine.mobyStorageDriver':
      major >= SNAPSHOTTER_SINCE
        ? ENFORCED
        : { level: 'enforced', except: ['snapshotter'], reason: `${needs}, and ${known}` },
  };
}

/** Returns the support shared by every windowless driver with real engines on Linux; each adds its machine and its cluster. */
export function engineSupport(name: string) {
  const NO_WINDOW = stored(`the ${name} driver has no window`);
  return {
    version: STORED,
    'application.debug': STORED,
    'application.extensions.allowed.enabled': ENFORCED,
    'application.extensions.allowed.list': ENFORCED,
    'application.extensions.installed': ENFORCED,
    'application.pathManagementStrategy': USER_FILES_SUPPORT,
    'application.telemetry.enabled': STORED,
    'application.updater.enabled': STORED,
    'application.autoStart': USER_FILES_SUPPORT,
    'application.startInBackground': NO_WINDOW,
    'application.hideNotificationIcon': NO_WINDOW,
    'application.locale': NO_WINDOW,
    'application.window.quitOnClose': NO_WINDOW,
    'application.theme': NO_WINDOW,
    'containerEngine.allowedImages.enabled': ENFORCED,
    'containerEngine.allowedImages.patterns': ENFORCED,
    'containerEngine.mobyStorageDriver': {
      level: 'enforced',
      reason: `snapshotter needs dockerd ${SNAPSHOTTER_SINCE} or later`,
    },
    'containerEngine.name': ENFORCED,
    'WSL.integrations': unsupported('it exists on Windows only'),
    'kubernetes.ingress.localhostOnly': unsupported('it exists on Windows only', false),
    'portForwarding.includeKubernetesServices': NO_WINDOW,
    'images.showAll': NO_WINDOW,
    'images.namespace': NO_WINDOW,
    'containers.showAll': NO_WINDOW,
    'containers.namespace': NO_WINDOW,
    'diagnostics.showMuted': STORED,
    'diagnostics.mutedChecks': STORED,
    'diagnostics.connectivity.interval': STORED,
    'diagnostics.connectivity.timeout': STORED,
    'experimental.containerEngine.webAssembly.enabled': unsupported('it has no WebAssembly shims', false),
    'experimental.virtualMachine.proxy.enabled': unsupported(PROXY, false),
    'experimental.virtualMachine.proxy.address': unsupported(PROXY, ''),
    'experimental.virtualMachine.proxy.password': unsupported(PROXY, ''),
    'experimental.virtualMachine.proxy.port': unsupported(PROXY),
    'experimental.virtualMachine.proxy.username': unsupported(PROXY, ''),
    'experimental.virtualMachine.proxy.noproxy': unsupported(PROXY),
  } satisfies Partial<Record<SettingPath, Support>>;
}

/** Support of a driver whose cluster is k3s. */
export const K3S_SUPPORT = {
  'kubernetes.enabled': ENFORCED,
  'kubernetes.version': ENFORCED,
  'kubernetes.port': ENFORCED,
  'kubernetes.options.traefik': ENFORCED,
  'kubernetes.options.flannel': ENFORCED,
  'experimental.kubernetes.options.spinkube': unsupported('the cluster has no Spin operator', false),
} satisfies Partial<Record<SettingPath, Support>>;

/** Returns the support of a driver without a cluster. `reason`: the cause, as a clause. */
export function withoutCluster(reason: string) {
  const STORED_ONLY = stored(`${reason}; the value is stored for a driver that has one`);
  return {
    'kubernetes.enabled': unsupported(reason, false),
    'kubernetes.version': STORED_ONLY,
    'kubernetes.port': STORED_ONLY,
    'kubernetes.options.traefik': STORED_ONLY,
    'kubernetes.options.flannel': STORED_ONLY,
    'experimental.kubernetes.options.spinkube': unsupported(reason, false),
  } satisfies Partial<Record<SettingPath, Support>>;
}
