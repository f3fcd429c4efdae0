import type { DriverInfo, Support, SupportMatrix } from '../../driver.ts';

const enforced: Support = { level: 'enforced' };
/** Handled by the service for its clients, without the machine. */
const stored: Support = { level: 'stored' };
const noWsl: Support = { level: 'stored', reason: 'a simulated machine has no distributions' };
const noNetwork: Support = { level: 'stored', reason: 'a simulated machine has no network' };

const SUPPORT: SupportMatrix = {
  version: stored,
  'application.adminAccess': enforced,
  'application.debug': stored,
  'application.extensions.allowed.enabled': enforced,
  'application.extensions.allowed.list': enforced,
  'application.extensions.installed': enforced,
  'application.pathManagementStrategy': stored,
  'application.telemetry.enabled': stored,
  'application.updater.enabled': stored,
  'application.autoStart': stored,
  'application.startInBackground': stored,
  'application.hideNotificationIcon': stored,
  'application.locale': stored,
  'application.window.quitOnClose': stored,
  'application.theme': stored,
  'containerEngine.allowedImages.enabled': enforced,
  'containerEngine.allowedImages.patterns': enforced,
  'containerEngine.mobyStorageDriver': enforced,
  'containerEngine.name': enforced,
  'virtualMachine.memoryInGB': enforced,
  'virtualMachine.numberCPUs': enforced,
  'virtualMachine.type': enforced,
  'virtualMachine.useRosetta': enforced,
  'virtualMachine.mount.type': enforced,
  'WSL.integrations': noWsl,
  'kubernetes.version': enforced,
  'kubernetes.port': enforced,
  'kubernetes.enabled': enforced,
  'kubernetes.options.traefik': enforced,
  'kubernetes.options.flannel': enforced,
  'kubernetes.ingress.localhostOnly': enforced,
  'portForwarding.includeKubernetesServices': stored,
  'images.showAll': stored,
  'images.namespace': stored,
  'containers.showAll': stored,
  'containers.namespace': stored,
  'diagnostics.showMuted': stored,
  'diagnostics.mutedChecks': stored,
  'diagnostics.connectivity.interval': stored,
  'diagnostics.connectivity.timeout': stored,
  'experimental.containerEngine.webAssembly.enabled': enforced,
  'experimental.kubernetes.options.spinkube': enforced,
  'experimental.virtualMachine.diskSize': enforced,
  'experimental.virtualMachine.mount.9p.securityModel': enforced,
  'experimental.virtualMachine.mount.9p.protocolVersion': enforced,
  'experimental.virtualMachine.mount.9p.msizeInKib': enforced,
  'experimental.virtualMachine.mount.9p.cacheMode': enforced,
  'experimental.virtualMachine.proxy.enabled': noNetwork,
  'experimental.virtualMachine.proxy.address': noNetwork,
  'experimental.virtualMachine.proxy.password': noNetwork,
  'experimental.virtualMachine.proxy.port': noNetwork,
  'experimental.virtualMachine.proxy.username': noNetwork,
  'experimental.virtualMachine.proxy.noproxy': noNetwork,
  'experimental.virtualMachine.sshPortForwarder': enforced,
};

export const SIMULATED_INFO: DriverInfo = {
  name: 'simulated',
  simulated: true,
  summary: 'A model of a machine with both engines and a cluster, for trying things out; nothing really runs.',
  support: SUPPORT,
  // The model could require a restart; applying it live makes live changes visible.
  liveFields: ['experimental.virtualMachine.sshPortForwarder'],
  hasCluster: true,
};
