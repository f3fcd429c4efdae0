import { isDeepStrictEqual } from 'node:util';
import type {
  Bounds,
  ClusterSpec,
  DriverInfo,
  EngineSpec,
  LiveRoom,
  MachineSpec,
  MachineStatus,
  Support,
  SupportMatrix,
} from '../drivers/driver.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { sameValue } from '../settings/canonical.ts';
import type { Effect, ManagedPath, Part } from '../settings/field.ts';
import { BLOCK_FIELDS } from '../settings/fields.gen.ts';
import { fieldAt } from '../settings/fields.ts';
import { leafAt } from '../settings/leaf-paths.ts';

/** The settings behind a member of a spec. */
export interface Member<S> {
  path: ManagedPath;
  value(spec: S): JsonValue;
  /** False where the desired spec does not use the member, so that drift costs nothing. */
  matters?(desired: S): boolean;
  /** True if a different running value is acceptable. */
  suffices?(running: S, desired: S): boolean;
}

/** The parts of a running machine's status that affect drift. */
export type RunningMachine = Pick<Extract<MachineStatus, { state: 'on' }>, 'spec' | 'room'>;

/** The 9p options have no effect with other mount types. */
const with9p = ({ mount }: MachineSpec) => mount.type === '9p';

export const MACHINE_MEMBERS: readonly Member<MachineSpec>[] = [
  { path: 'experimental.virtualMachine.mount.9p.cacheMode', value: (spec) => spec.mount.cacheMode, matters: with9p },
  { path: 'experimental.virtualMachine.mount.9p.msizeInKib', value: (spec) => spec.mount.msizeInKib, matters: with9p },
  {
    path: 'experimental.virtualMachine.mount.9p.protocolVersion',
    value: (spec) => spec.mount.protocolVersion,
    matters: with9p,
  },
  {
    path: 'experimental.virtualMachine.mount.9p.securityModel',
    value: (spec) => spec.mount.securityModel,
    matters: with9p,
  },
  { path: 'experimental.virtualMachine.sshPortForwarder', value: (spec) => spec.sshPortForwarder },
  { path: 'virtualMachine.mount.type', value: (spec) => spec.mount.type },
  { path: 'virtualMachine.type', value: (spec) => spec.type },
  { path: 'virtualMachine.useRosetta', value: (spec) => spec.useRosetta },
  { path: 'application.adminAccess', value: (spec) => spec.adminAccess },
  {
    path: 'experimental.virtualMachine.diskSize',
    value: (spec) => spec.diskBytes,
    // A disk never shrinks, so a restart would not help.
    suffices: (running, desired) => running.diskBytes >= desired.diskBytes,
  },
  { path: 'virtualMachine.memoryInGB', value: (spec) => spec.memoryGiB },
  { path: 'virtualMachine.numberCPUs', value: (spec) => spec.cpus },
  ...carriedBy('machine'),
];

export const ENGINE_MEMBERS: readonly Member<EngineSpec>[] = [
  {
    path: 'containerEngine.mobyStorageDriver',
    value: (spec) => spec.storageDriver,
    matters: (desired) => desired.name === 'moby',
  },
  { path: 'containerEngine.allowedImages.enabled', value: (spec) => spec.allowedImages.enabled },
  { path: 'containerEngine.name', value: (spec) => spec.name },
  { path: 'experimental.containerEngine.webAssembly.enabled', value: (spec) => spec.webAssembly },
  {
    path: 'containerEngine.allowedImages.patterns',
    value: (spec) => [...spec.allowedImages.patterns],
    matters: (desired) => desired.allowedImages.enabled,
  },
  ...carriedBy('engine'),
];

/** A desired version of `''` lets the service choose, so any running version is acceptable. */
export const CLUSTER_MEMBERS: readonly Member<ClusterSpec>[] = [
  { path: 'kubernetes.version', value: (spec) => spec.version, matters: (desired) => desired.version !== '' },
  { path: 'containerEngine.name', value: (spec) => spec.engine },
  { path: 'experimental.kubernetes.options.spinkube', value: (spec) => spec.spinkube },
  { path: 'kubernetes.options.flannel', value: (spec) => spec.flannel },
  { path: 'kubernetes.options.traefik', value: (spec) => spec.traefik },
  { path: 'kubernetes.port', value: (spec) => spec.port },
  { path: 'kubernetes.ingress.localhostOnly', value: (spec) => spec.localhostOnly },
  ...carriedBy('cluster'),
];

/** The members of one part's specification that come from blocks; a field has the same place in both (`carriedOptions`). */
function carriedBy(part: Part): Member<object>[] {
  return BLOCK_FIELDS.filter((field) => field.part === part).map(({ path, default: value }) => {
    const place = path.slice(path.indexOf('.') + 1);
    // A part started before the field existed runs with the field's default.
    return { path, value: (spec) => leafAt(spec as JsonObject, place) ?? value };
  });
}

/** The settings in which a running part differs from its desired spec. */
export interface Drift {
  /** Can be applied live. */
  live: ManagedPath[];
  /** Needs a stop and a start. */
  restart: ManagedPath[];
}

/** Returns the level at which a driver supports a setting or a field of a block. */
export function supportOf({ name, support }: { name: string; support: SupportMatrix }, path: ManagedPath): Support {
  return support[path] ?? { level: 'unsupported', reason: `the ${name} driver has nothing that it applies to` };
}

/** True if the driver enforces a setting. Others are ignored, because nothing running depends on them. */
export function isEnforced(path: ManagedPath, driver: DriverInfo): boolean {
  return supportOf(driver, path).level === 'enforced';
}

/** True if a running backend accepts any new value, according to the schema or this driver. */
export function isLive(path: ManagedPath, driver: DriverInfo): boolean {
  return driver.liveFields.includes(path) || effectsOf(path).includes('live');
}

/** Returns the default effect of a change on each kind of backend; empty for unknown paths. */
export function effectsOf(path: string): Effect[] {
  const effect = fieldAt(path)?.effect;
  return effect ? [effect.lima, effect.wsl] : [];
}

/** Settings of which a running machine accepts some values live; others need a restart. */
const LIVE_RANGES: Partial<Record<ManagedPath, keyof LiveRoom>> = {
  'virtualMachine.memoryInGB': 'memoryGiB',
  'virtualMachine.numberCPUs': 'cpus',
  'experimental.virtualMachine.diskSize': 'diskBytes',
};

/** Returns the live range of a setting, as last reported by the running machine, or undefined if none was reported. */
export function liveRange(path: ManagedPath, { room }: RunningMachine): Bounds | undefined {
  const member = LIVE_RANGES[path];
  return member && room?.[member];
}

/** Compares a running machine with its desired spec. A difference is live if the driver accepts any value, or the machine has room for this one. */
export function machineDrift(running: RunningMachine, desired: MachineSpec, driver: DriverInfo): Drift {
  return driftOf(MACHINE_MEMBERS, running.spec, desired, driver, (path, value) => {
    const bounds = liveRange(path, running);
    return bounds !== undefined && typeof value === 'number' && value >= bounds.least && value <= bounds.most;
  });
}

export function engineDrift(running: EngineSpec, desired: EngineSpec, driver: DriverInfo): Drift {
  return driftOf(ENGINE_MEMBERS, running, desired, driver);
}

/** Compares a running cluster with its desired spec. It accepts no changes, so every difference needs a restart. */
export function clusterDrift(running: ClusterSpec, desired: ClusterSpec, driver: DriverInfo): Drift {
  const { live, restart } = driftOf(CLUSTER_MEMBERS, running, desired, driver);
  return { live: [], restart: [...restart, ...live] };
}

function driftOf<S>(
  members: readonly Member<S>[],
  running: S,
  desired: S,
  driver: DriverInfo,
  hasRoom: (path: ManagedPath, value: JsonValue) => boolean = () => false,
): Drift {
  const drift: Drift = { live: [], restart: [] };
  for (const { path, value, matters, suffices } of members) {
    if (!isEnforced(path, driver) || matters?.(desired) === false) continue;
    if (same(path, value(running), value(desired)) || suffices?.(running, desired)) continue;
    (isLive(path, driver) || hasRoom(path, value(desired)) ? drift.live : drift.restart).push(path);
  }
  return drift;
}

/** Compares two values of a spec. They are canonical already, except that a running version may carry a build suffix. */
function same(path: ManagedPath, running: JsonValue, desired: JsonValue): boolean {
  return path === 'kubernetes.version' ? sameValue(path, running, desired) : isDeepStrictEqual(running, desired);
}

const OWNERS: readonly [Part, readonly { path: ManagedPath }[]][] = [
  ['machine', MACHINE_MEMBERS],
  ['engine', ENGINE_MEMBERS],
  ['cluster', CLUSTER_MEMBERS],
];

/** Returns the part whose spec contains a setting, or undefined if no part depends on it. */
export function ownerOf(path: ManagedPath): Part | undefined {
  return OWNERS.find(([, members]) => members.some((member) => member.path === path))?.[0];
}
