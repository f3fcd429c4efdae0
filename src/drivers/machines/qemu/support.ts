import type { Support, SupportMatrix } from '../../driver.ts';

const ENFORCED: Support = { level: 'enforced' };
const STORED: Support = { level: 'stored' };

const NO_CLUSTER = 'this driver has no cluster yet';
const NO_MOUNTS = 'this driver does not show directories of this computer in the machine yet';
const PROXY = 'only the Windows subsystem for Linux uses this proxy';

/** A part that the driver does not have. `accepts`: values that ask for nothing. */
function without(reason: string, ...accepts: (boolean | number | string)[]): Support {
  return accepts.length > 0 ? { level: 'unsupported', reason, accepts } : { level: 'unsupported', reason };
}

function stored(reason: string): Support {
  return { level: 'stored', reason };
}

/** The service does it, in files of the user. */
const OF_THE_USER: Support = { level: 'enforced', reason: 'with RDCTL_HOME no file of the user is touched' };
const NO_WINDOW = stored('the qemu driver has no window');
const LATER = stored(`${NO_CLUSTER}; the value is kept for one that has`);

/** What the qemu driver does with every setting. The type asks for each one. */
export const QEMU_SUPPORT: SupportMatrix = {
  version: STORED,
  'application.adminAccess': without('the network of the machine needs no administrator', false),
  'application.debug': STORED,
  'application.extensions.allowed.enabled': ENFORCED,
  'application.extensions.allowed.list': ENFORCED,
  'application.extensions.installed': ENFORCED,
  'application.pathManagementStrategy': OF_THE_USER,
  'application.telemetry.enabled': STORED,
  'application.updater.enabled': STORED,
  'application.autoStart': OF_THE_USER,
  'application.startInBackground': NO_WINDOW,
  'application.hideNotificationIcon': NO_WINDOW,
  'application.locale': NO_WINDOW,
  'application.window.quitOnClose': NO_WINDOW,
  'application.theme': NO_WINDOW,
  'containerEngine.allowedImages.enabled': ENFORCED,
  'containerEngine.allowedImages.patterns': ENFORCED,
  'containerEngine.mobyStorageDriver': {
    level: 'enforced',
    except: ['snapshotter'],
    reason: 'moby keeps its images in its own storage here, so the value can be auto or classic',
  },
  'containerEngine.name': ENFORCED,
  'virtualMachine.memoryInGB': ENFORCED,
  'virtualMachine.numberCPUs': ENFORCED,
  'virtualMachine.type': { level: 'enforced', except: ['vz'], reason: 'the machine runs in QEMU' },
  'virtualMachine.useRosetta': without('it exists on macOS only', false),
  'virtualMachine.mount.type': without(NO_MOUNTS, 'reverse-sshfs'),
  'WSL.integrations': without('it exists on Windows only'),
  'kubernetes.version': LATER,
  'kubernetes.port': LATER,
  'kubernetes.enabled': without(NO_CLUSTER, false),
  'kubernetes.options.traefik': LATER,
  'kubernetes.options.flannel': LATER,
  'kubernetes.ingress.localhostOnly': without('it exists on Windows only', false),
  'portForwarding.includeKubernetesServices': LATER,
  'images.showAll': NO_WINDOW,
  'images.namespace': NO_WINDOW,
  'containers.showAll': NO_WINDOW,
  'containers.namespace': NO_WINDOW,
  'diagnostics.showMuted': STORED,
  'diagnostics.mutedChecks': STORED,
  'diagnostics.connectivity.interval': STORED,
  'diagnostics.connectivity.timeout': STORED,
  'experimental.containerEngine.webAssembly.enabled': without('it has no WebAssembly shims', false),
  'experimental.kubernetes.options.spinkube': without(NO_CLUSTER, false),
  'experimental.virtualMachine.diskSize': { level: 'enforced', reason: 'a disk grows and never shrinks' },
  'experimental.virtualMachine.mount.9p.securityModel': without(NO_MOUNTS),
  'experimental.virtualMachine.mount.9p.protocolVersion': without(NO_MOUNTS),
  'experimental.virtualMachine.mount.9p.msizeInKib': without(NO_MOUNTS),
  'experimental.virtualMachine.mount.9p.cacheMode': without(NO_MOUNTS),
  'experimental.virtualMachine.proxy.enabled': without(PROXY, false),
  'experimental.virtualMachine.proxy.address': without(PROXY, ''),
  'experimental.virtualMachine.proxy.password': without(PROXY, ''),
  'experimental.virtualMachine.proxy.port': without(PROXY),
  'experimental.virtualMachine.proxy.username': without(PROXY, ''),
  'experimental.virtualMachine.proxy.noproxy': without(PROXY),
  'experimental.virtualMachine.sshPortForwarder': without('ports are forwarded over SSH', true),
};
