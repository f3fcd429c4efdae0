import type { ClusterSpec, DriverInfo } from '../drivers/driver.ts';
import type { JsonValue } from '../json.ts';
import { DEFAULT_BLOCKS } from '../settings/blocks.gen.ts';
import type { ManagedPath } from '../settings/field.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import {
  busyEngines,
  clusterSpec,
  ENGINE_NAMES,
  engineSpec,
  installedVersion,
  isUp,
  machineSpec,
  type Observed,
} from './backend.ts';
import { isDowngrade } from './consequences.ts';
import {
  CLUSTER_MEMBERS,
  clusterDrift,
  type Drift,
  ENGINE_MEMBERS,
  engineDrift,
  isEnforced,
  MACHINE_MEMBERS,
  type Member,
  machineDrift,
} from './drift.ts';

/** A setting that the running backend was started without. */
export interface RestartReason {
  current: JsonValue;
  desired: JsonValue;
  severity: 'restart' | 'reset';
}

const SPIN_OPERATOR = 'experimental.kubernetes.options.spinkube';

/** Key order of the reply. */
const ORDER: readonly SettingPath[] = [
  'containerEngine.mobyStorageDriver',
  'kubernetes.version',
  'containerEngine.allowedImages.enabled',
  'containerEngine.name',
  'experimental.containerEngine.webAssembly.enabled',
  'experimental.kubernetes.options.spinkube',
  'kubernetes.enabled',
  'kubernetes.options.flannel',
  'kubernetes.options.traefik',
  'kubernetes.port',
  'experimental.virtualMachine.mount.9p.cacheMode',
  'experimental.virtualMachine.mount.9p.msizeInKib',
  'experimental.virtualMachine.mount.9p.protocolVersion',
  'experimental.virtualMachine.mount.9p.securityModel',
  'experimental.virtualMachine.sshPortForwarder',
  'virtualMachine.mount.type',
  'virtualMachine.type',
  'virtualMachine.useRosetta',
  'application.adminAccess',
  'experimental.virtualMachine.diskSize',
  'virtualMachine.memoryInGB',
  'virtualMachine.numberCPUs',
  'kubernetes.ingress.localhostOnly',
];

/**
 * Returns the settings, in wire order, in which `after` differs from the running backend such that it needs a restart; empty while nothing runs. An
 * engine is compared with whichever one runs. `before` are the settings in force: parts that do not run are compared with them, and ignored without
 * them. Blocks of a profile are not included, because the wire does not know them.
 */
export function restartReasons(
  after: Settings,
  observed: Observed,
  driver: DriverInfo,
  before?: Settings,
): Record<string, RestartReason> {
  if (!isUp(observed) && observed.machine.state !== 'on') return {};
  const byPath = new Map<ManagedPath, RestartReason>();
  const note = (path: ManagedPath, current: JsonValue) => {
    byPath.set(path, { current, desired: leafAt(after, path) ?? null, severity: 'restart' });
  };
  machineReasons();
  engineReasons();
  if (driver.hasCluster) clusterReasons();
  const reasons: Record<string, RestartReason> = {};
  for (const path of ORDER) {
    const reason = byPath.get(path);
    if (reason) reasons[path] = reason;
  }
  return reasons;

  function machineReasons() {
    if (observed.machine.state !== 'on') return;
    const drift = machineDrift(observed.machine, machineSpec(after, DEFAULT_BLOCKS), driver);
    collect(MACHINE_MEMBERS, observed.machine.spec, drift);
  }

  function engineReasons() {
    const { name } = after.containerEngine;
    const names = [name, ...ENGINE_NAMES.filter((other) => other !== name)];
    const running = names.map((each) => observed.engines[each]).find(({ state }) => state === 'running');
    if (running?.state === 'running') {
      collect(ENGINE_MEMBERS, running.spec, engineDrift(running.spec, engineSpec(after, DEFAULT_BLOCKS), driver));
    }
    const other = busyEngines(observed).find((busy) => busy !== name);
    if (other) note('containerEngine.name', other);
  }

  function clusterReasons() {
    const { cluster } = observed;
    const { enabled, version } = after.kubernetes;
    const running = cluster.state === 'running' ? cluster.spec : before && clusterSpec(before, DEFAULT_BLOCKS);
    if (running) {
      const drift = clusterDrift(running, clusterSpec(after, DEFAULT_BLOCKS), driver);
      // While the cluster is off, of its options only the Spin operator requires a restart.
      const counts = ({ path }: Member<ClusterSpec>) => enabled || path === SPIN_OPERATOR;
      collect(CLUSTER_MEMBERS.filter(counts), running, drift);
    }
    const on = cluster.state === 'running' || before?.kubernetes.enabled === true;
    if (enabled !== on && isEnforced('kubernetes.enabled', driver)) note('kubernetes.enabled', on);
    const installed = installedVersion(observed);
    if (enabled && isDowngrade(installed, version)) {
      byPath.set('kubernetes.version', { current: installed ?? '', desired: version, severity: 'reset' });
    }
  }

  function collect<S>(members: readonly Member<S>[], running: S, { restart }: Drift) {
    for (const { path, value } of members) {
      if (restart.includes(path) && !byPath.has(path)) note(path, displayValue(path, value(running)));
    }
  }
}

/** Converts a running disk's size from bytes to the unit that settings use. */
function displayValue(path: ManagedPath, value: JsonValue): JsonValue {
  if (path !== 'experimental.virtualMachine.diskSize' || typeof value !== 'number') return value;
  return value % 2 ** 30 === 0 ? `${value / 2 ** 30}GiB` : `${value}B`;
}
