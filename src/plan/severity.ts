import type { DriverInfo } from '../drivers/driver.ts';
import type { ManagedPath, Part } from '../settings/field.ts';
import { fieldAt } from '../settings/fields.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { busyEngines, clusterHasProcess, installedVersion, isUp } from './backend.ts';
import type { Severity } from './change.ts';
import type { Consequences } from './consequences.ts';
import { mayDowngrade } from './consequences.ts';
import { effectsOf, isEnforced, isLive, liveRange, ownerOf, supportOf } from './drift.ts';

/** The inputs to the cost of a change other than the setting itself. */
export interface Circumstances extends Consequences {
  /** The settings of the goal, once every change that is not blocked has been made. */
  desired: Settings;
}

/** The cost of a change, with its reason as a clause. */
export interface Cost {
  severity: Severity;
  reason: string;
}

/**
 * Returns the cost of changing a setting. The schema's effect is the default; a function in `EXCEPTIONS` decides where
 * the cost depends on direction, on other settings or on what runs. Changes that are only stored, and changes while
 * nothing runs or everything stops, cost nothing, except for a lower cluster version, which deletes data later.
 */
export function costOf(path: ManagedPath, at: Circumstances): Cost {
  const served = SERVICE_REASONS[path];
  if (served !== undefined && supportOf(at.driver, path).level !== 'unsupported') return free(served);
  if (!isEnforced(path, at.driver)) return free(storedReason(path, at.driver));
  return EXCEPTIONS[path]?.(at) ?? quiet(at) ?? defaultCost(path, at);
}

const EXCEPTIONS: Partial<Record<ManagedPath, (at: Circumstances) => Cost | undefined>> = {
  'kubernetes.version': clusterVersion,
  'kubernetes.enabled': clusterSwitch,
  'kubernetes.port': clusterOption,
  'kubernetes.options.traefik': clusterOption,
  'kubernetes.options.flannel': clusterOption,
  'kubernetes.ingress.localhostOnly': clusterOption,
  'experimental.kubernetes.options.spinkube': clusterOption,
  'containerEngine.name': engineName,
  'containerEngine.mobyStorageDriver': mobyStorageDriver,
  'containerEngine.allowedImages.patterns': imagePatterns,
  'experimental.virtualMachine.diskSize': diskSize,
  'experimental.virtualMachine.mount.9p.cacheMode': optionOf9p,
  'experimental.virtualMachine.mount.9p.msizeInKib': optionOf9p,
  'experimental.virtualMachine.mount.9p.protocolVersion': optionOf9p,
  'experimental.virtualMachine.mount.9p.securityModel': optionOf9p,
};

/** Reasons for settings that only the service uses, because no running part depends on them. */
const SERVICE_REASONS: Partial<Record<ManagedPath, string>> = {
  'application.debug': 'the log follows at once',
  'application.extensions.allowed.enabled': 'extensions are held to the list from the next install on',
  'application.extensions.allowed.list': 'the next install is held to it',
  'diagnostics.connectivity.interval': 'the next check follows it',
  'diagnostics.connectivity.timeout': 'the next check follows it',
  'diagnostics.mutedChecks': 'diagnostics are shown accordingly',
  'diagnostics.showMuted': 'diagnostics are shown accordingly',
};

/**
 * Returns the cost of a version change. The installed version decides, not the running one: the data stays on disk
 * while the cluster is off, and a lower version deletes it at the next start.
 */
function clusterVersion(at: Circumstances): Cost | undefined {
  const installed = installedVersion(at.observed);
  const { version } = at.desired.kubernetes;
  if (mayDowngrade(installed, version)) return reset(installed ?? '');
  return clusterOption(at);
}

function clusterSwitch(at: Circumstances): Cost | undefined {
  const { enabled, version } = at.desired.kubernetes;
  const installed = installedVersion(at.observed);
  if (enabled && at.goal.on && mayDowngrade(installed, version)) return reset(installed ?? '');
  const silent = quiet(at);
  if (silent) return silent;
  if (enabled === clusterHasProcess(at.observed)) return free(`the cluster is already ${enabled ? 'running' : 'off'}`);
  return { severity: 'restart', reason: enabled ? 'starts the cluster' : 'stops the cluster' };
}

/** Returns the cost of a cluster option, which is nothing while the cluster is off and stays off. */
function clusterOption(at: Circumstances): Cost | undefined {
  return quiet(at) ?? (at.desired.kubernetes.enabled ? undefined : free('the cluster is off'));
}

function engineName(at: Circumstances): Cost | undefined {
  const silent = quiet(at);
  if (silent) return silent;
  const { name } = at.desired.containerEngine;
  const others = busyEngines(at.observed).filter((running) => running !== name);
  if (others.length === 0) {
    const { state } = at.observed.engines[name];
    return free(state === 'stopped' ? `no engine is running; ${name} will be started` : `${name} is already running`);
  }
  return { severity: 'restart', reason: `stops ${others.join(' and ')} and starts ${name}` };
}

function mobyStorageDriver(at: Circumstances): Cost | undefined {
  return at.desired.containerEngine.name === 'moby' ? undefined : free('only used by moby; the engine is containerd');
}

function imagePatterns(at: Circumstances): Cost | undefined {
  return at.desired.containerEngine.allowedImages.enabled ? undefined : free('the list of allowed images is disabled');
}

/** Returns the cost of a 9p option. With another mount type it costs nothing: a driver may not support 9p, and then only the options change. */
function optionOf9p(at: Circumstances): Cost | undefined {
  const { type } = at.desired.virtualMachine.mount;
  return type === '9p' ? undefined : free(`only used by 9p; the mount type is ${type}`);
}

/** Returns the cost of a disk size. A disk never shrinks, so a smaller size costs nothing. */
function diskSize(at: Circumstances): Cost | undefined {
  const { machine } = at.observed;
  const isLarger = machine.state === 'on' && machine.spec.diskBytes > at.goal.machine.diskBytes;
  return quiet(at) ?? (isLarger ? free('the disk is already larger, and cannot shrink') : undefined);
}

function quiet({ goal, observed }: Circumstances): Cost | undefined {
  const runs = goal.on && (isUp(observed) || observed.machine.state === 'on');
  return runs ? undefined : free('takes effect at the next start');
}

function defaultCost(path: ManagedPath, at: Circumstances): Cost {
  const owner = ownerOf(path);
  const hasEffect = effectsOf(path).some((effect) => effect !== 'none');
  if (owner === undefined || !hasEffect) return free('does not affect the machine, engine or cluster');
  const { drift } = owner === 'engine' ? at.engines[at.goal.engine.name] : at[owner];
  if (drift && ![...drift.live, ...drift.restart].includes(path)) return free('already in effect');
  if (!drift && isLive(path, at.driver)) return free(`takes effect when the ${owner} starts`);
  if (!drift?.live.includes(path)) return { severity: 'restart', reason: restartReason(path, owner, at) };
  const alone = drift.restart.length === 0;
  return {
    severity: 'live',
    reason: `applied to the ${alone ? `running ${owner}` : `${owner}, which restarts anyway`}`,
  };
}

/** Describes the restart of a part. Bounds in bytes would not help the user. */
function restartReason(path: ManagedPath, owner: Part, { observed }: Circumstances): string {
  const { machine } = observed;
  const room =
    machine.state === 'on' && typeof fieldAt(path)?.default === 'number' ? liveRange(path, machine) : undefined;
  const narrow = room && `; the live limits are ${room.least} to ${room.most}`;
  return `requires a restart of the ${owner}${narrow ?? ''}`;
}

function reset(installed: string): Cost {
  const reason =
    installed === ''
      ? 'a newer cluster may be installed, and a lower version deletes its data'
      : `a cluster of version ${installed} is installed, and a lower version deletes its data`;
  return { severity: 'reset', reason };
}

function free(reason: string): Cost {
  return { severity: 'none', reason };
}

function storedReason(path: ManagedPath, driver: DriverInfo): string {
  const support = supportOf(driver, path);
  if (support.level === 'enforced') return 'does not affect the machine, engine or cluster';
  return support.reason ?? 'does not affect the machine, engine or cluster';
}
