import { setTimeout as delay } from 'node:timers/promises';
import { RdError } from '../../../errors.ts';
import type { DriverFactory, DriverInfo, Support, SupportMatrix } from '../../driver.ts';
import { simulatedDriver } from './driver.ts';
import { listedFaults, simulationOptions } from './options.ts';
import { fileStore } from './store.ts';

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
  'machine.mounts': enforced,
  'machine.hostPorts': enforced,
  'machine.pauseAfterMinutes': enforced,
};

export const SIMULATED_INFO: DriverInfo = {
  name: 'simulated',
  simulated: true,
  summary: 'A model of a machine with both engines and a cluster, to try things out; nothing really runs.',
  support: SUPPORT,
  // The model could require a restart; applying it live makes live changes visible.
  liveFields: ['experimental.virtualMachine.sshPortForwarder'],
  hasCluster: true,
};

/** Default duration of each step in milliseconds. */
const LATENCY: Readonly<Record<string, number>> = {
  'machine start': 300,
  'machine stop': 150,
  'engine start': 200,
  'engine stop': 100,
  'cluster start': 400,
  'cluster stop': 150,
  'cluster reset': 200,
};
const OTHER_LATENCY = 50;
/** Proving time in milliseconds: a tenth of that of other drivers, like the steps. */
const PROVING_MS = 300;

/** The simulated driver: never chosen automatically; its machine is a file and outlives the service. */
export const simulated: DriverFactory = {
  ...SIMULATED_INFO,
  automatic: false,
  async probe(env) {
    try {
      simulationOptions(env);
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      return { usable: false, reason: error.message, fix: error.advice ?? 'Unset the variable.' };
    }
    return { usable: true, detail: 'needs nothing' };
  },
  async atRest({ directory }) {
    const { cluster } = fileStore(directory).load();
    return { support: SUPPORT, ...(cluster.state === 'absent' ? {} : { installedCluster: cluster.installedVersion }) };
  },
  async open({ directory, env, now }) {
    const { latencyMs, faults, firstWorkload } = simulationOptions(env);
    return simulatedDriver({
      info: { ...SIMULATED_INFO, provingMs: Math.min(PROVING_MS, 10 * (latencyMs ?? PROVING_MS)) },
      store: fileStore(directory),
      now,
      sleep: (ms, signal) => delay(ms, undefined, { signal }),
      latency: (part, step) => {
        const kind = part === 'machine' || part === 'cluster' ? part : 'engine';
        return latencyMs ?? LATENCY[`${kind} ${step}`] ?? OTHER_LATENCY;
      },
      faults: listedFaults(faults),
      firstWorkload,
      clusterReadyMs: 0,
    });
  },
};
