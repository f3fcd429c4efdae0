import type { DriverInfo } from '../drivers/driver.ts';
import type { JsonValue } from '../json.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';
import { CLUSTER_MEMBERS, ENGINE_MEMBERS, MACHINE_MEMBERS, type Member } from './drift.ts';
import { isDowngrade } from './kubernetes-order.ts';
import { busyEngines, installedVersion, isUp, type Observed } from './observed.ts';
import { runningDrift } from './running.ts';

/** One field that what runs was started without. */
export interface RestartReason {
  current: JsonValue;
  desired: JsonValue;
  severity: 'restart' | 'reset';
}

/** Key order of the answer (api facts, section 11.2). */
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
 * Fields in which `after` differs from what runs such that a restart is needed, in the order of the wire format. Empty while
 * nothing runs. `before` are the settings in force: a cluster that is merely not up yet is then no reason.
 */
export function restartReasons(
  after: Settings,
  observed: Observed,
  driver: DriverInfo,
  before?: Settings,
): Record<string, RestartReason> {
  if (!isUp(observed) && observed.machine.state !== 'on') return {};
  const found = new Map<SettingPath, RestartReason>();
  const note = (path: SettingPath, current: JsonValue) => {
    found.set(path, { current, desired: leafAt(after, path) ?? null, severity: 'restart' });
  };
  if (observed.machine.state === 'on') collect(MACHINE_MEMBERS, observed.machine.spec, 'machine');
  const { name } = after.containerEngine;
  const engine = observed.engines[name];
  const other = busyEngines(observed).find((running) => running !== name);
  if (engine.state === 'running') collect(ENGINE_MEMBERS, engine.spec, 'engine');
  if (other) note('containerEngine.name', other);
  clusterReasons();
  const reasons: Record<string, RestartReason> = {};
  for (const path of ORDER) {
    const reason = found.get(path);
    if (reason) reasons[path] = reason;
  }
  return reasons;

  function collect<S>(members: readonly Member<S>[], running: S, part: 'machine' | 'engine' | 'cluster') {
    const restart = runningDrift(part, after, observed, driver)?.restart ?? [];
    for (const { path, value } of members) if (restart.includes(path)) note(path, shown(path, value(running)));
  }

  function clusterReasons() {
    if (!driver.hasCluster) return;
    const { enabled, version } = after.kubernetes;
    const { cluster } = observed;
    if (cluster.state === 'running' && !enabled) return note('kubernetes.enabled', true);
    if (cluster.state === 'running') collect(CLUSTER_MEMBERS, cluster.spec, 'cluster');
    else if (enabled && before?.kubernetes.enabled !== true) note('kubernetes.enabled', false);
    const installed = installedVersion(observed);
    if (enabled && isDowngrade(installed, version)) {
      found.set('kubernetes.version', { current: installed ?? '', desired: version, severity: 'reset' });
    }
  }
}

/** A running disk is known in bytes; settings write sizes with a unit. */
function shown(path: SettingPath, value: JsonValue): JsonValue {
  if (path !== 'experimental.virtualMachine.diskSize' || typeof value !== 'number') return value;
  return value % 2 ** 30 === 0 ? `${value / 2 ** 30}GiB` : `${value}B`;
}
