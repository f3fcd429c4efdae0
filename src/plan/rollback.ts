import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../drivers/driver.ts';
import { type ErrorCode, RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { parseByteSize } from '../settings/canonical.ts';
import type { Part } from '../settings/field.ts';
import { isLocked } from '../settings/locks.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { OnFailure } from './apply.gen.ts';
import { backendOf, type DesiredBackend, goalOf, type Observed } from './backend.ts';
import { consequencesOf } from './consequences.ts';
import { recordedChanges } from './history.ts';

/** A desired state that can be restored. `generation`: its number in the history. */
export interface EarlierState extends DesiredBackend {
  generation: number;
}

export type { OnFailure };

export type BackendPart = Part;

/** Each part runs in the one before it. */
const PARTS: readonly BackendPart[] = ['machine', 'engine', 'cluster'];

/** A terminal failure of the loop. `what`: the name of the step, such as `engine start`, or `observation`. */
export interface TerminalFailure {
  what: string;
  error: RdError;
}

export interface RollbackInput {
  onFailure: OnFailure;
  /** The desired state that the change led to. */
  failed: DesiredBackend;
  /** The parts that the change affects; see `touchedParts`. */
  touched: readonly BackendPart[];
  /** The state to restore; see `earlierState`. */
  earlier: EarlierState | undefined;
  failure: TerminalFailure;
  /** The part in which the backend had already failed for good when the change was written. */
  failedBefore: BackendPart | undefined;
  locks: JsonObject;
  /** A restored snapshot has not been seen running yet. */
  isRestoreUnproven: boolean;
  driver: DriverInfo;
  observed: Observed;
}

/** Either the state to restore, or the reason, as a clause, that the failed one stays. */
export type RollbackDecision = { to: EarlierState } | { keptBecause: string };

/** Decides whether to undo a failed change. It is undone only if the change caused the failure and undoing adds no losses. Pure. */
export function decideRollback(input: RollbackInput): RollbackDecision {
  const { onFailure, earlier, failed } = input;
  if (onFailure === 'keep') return { keptBecause: 'the apply asked for it' };
  if (!earlier) return { keptBecause: 'the backend has not run in this home before' };
  const to = { ...earlier, settings: withLasting(earlier.settings, failed.settings) };
  const keptBecause = otherCause(input, earlier) ?? rollbackObstacle(to, input);
  return keptBecause === undefined ? { to } : { keptBecause };
}

export interface EarlierInput {
  before: EarlierState;
  /** The power last requested; a service that was launched for an apply has its backend off. */
  power: DesiredBackend['power'];
  /** The last state that ran. */
  proven: EarlierState | undefined;
}

/**
 * Returns the state that a failed change falls back to. A backend that was off goes off again, with its earlier settings; otherwise this is the last
 * proven state. Undefined if nothing has ever run. Pure.
 */
export function earlierState({ before, power, proven }: EarlierInput): EarlierState | undefined {
  return proven && power === 'stopped' ? { ...before, power } : proven;
}

/** Returns the reason, as a clause, that the change is not the cause of the failure, or undefined if it is. */
function otherCause(
  { failed, touched, failure, failedBefore }: RollbackInput,
  earlier: EarlierState,
): string | undefined {
  const part = partOf(failure.what);
  if (!part) return 'the failure is not one of the machine, the engine or the cluster';
  const isTouched = touched.includes(part);
  const environment = environmentCause(failure.error, isTouched);
  if (environment !== undefined) return environment;
  if (!isTouched && failedBefore === part) return `the ${part} had failed before, and the change does not affect it`;
  // A part is also affected by the parts it runs in.
  const isAffected = PARTS.slice(0, PARTS.indexOf(part) + 1).some((below) => touched.includes(below));
  if (!isAffected && failure.what.endsWith(' run')) return `the change does not affect the ${part}`;
  const ranBefore = earlier.power === 'started' && isSame(earlier, { ...failed, power: 'started' });
  return ranBefore ? 'these settings ran before' : undefined;
}

/** Returns the part that a step name such as `engine start` or `cluster answer` begins with. */
export function partOf(what: string): BackendPart | undefined {
  const [part] = what.split(' ');
  return part === 'machine' || part === 'engine' || part === 'cluster' ? part : undefined;
}

/** Returns the parts whose specification differs; all of them if the power changes. */
export function touchedParts(before: DesiredBackend, after: DesiredBackend, driver: DriverInfo): BackendPart[] {
  if (before.power !== after.power) return [...PARTS];
  const [old, next] = [goalOf(before, driver), goalOf(after, driver)];
  return PARTS.filter((part) => !isDeepStrictEqual(old[part], next[part]));
}

const DISK_FULL = 'the disk is full';
const NETWORK = 'the network or a registry failed';
const PERMISSION = 'this computer denied a permission';
const PORT = 'a port is in use';

/** Error codes of failures that other settings would not have avoided. */
const ENVIRONMENT: Partial<Record<ErrorCode, string>> = {
  ERR_IO: 'a file could not be read or written',
  ERR_CONNECTION: NETWORK,
  ERR_NOT_PRIVATE: PERMISSION,
  ERR_HOME_MOVED: 'the directories of this home were moved',
  ERR_BACKEND_LOCKED: 'another operation used the backend',
  ERR_INTERNAL: 'the failure is a bug, not an answer to the change',
};

const SYSTEM: Readonly<Record<string, string>> = {
  ENOSPC: DISK_FULL,
  EDQUOT: DISK_FULL,
  EROFS: PERMISSION,
  EACCES: PERMISSION,
  EPERM: PERMISSION,
  EMFILE: 'too many files were open',
  ENFILE: 'too many files were open',
  ENETUNREACH: NETWORK,
  EHOSTUNREACH: NETWORK,
  ENOTFOUND: NETWORK,
  EAI_AGAIN: NETWORK,
};

/** Log messages of programs that report a full disk or a failed network. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/no space left on device|disk quota exceeded/i, DISK_FULL],
  [/network is unreachable|no such host|temporary failure in name resolution|tls handshake timeout/i, NETWORK],
];

/**
 * Log messages that count as the cause only for parts that the change does not affect. For an affected part, a denied permission or a taken port may
 * be an answer to the change.
 */
const WORDS_ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/permission denied|operation not permitted|read-only file system/i, PERMISSION],
  [/address already in use/i, PORT],
];

function environmentCause(error: RdError, isTouched: boolean): string | undefined {
  const causes = causesOf(error);
  const words = isTouched ? WORDS : [...WORDS, ...WORDS_ELSEWHERE];
  for (const cause of causes) {
    const system = 'code' in cause && typeof cause.code === 'string' ? SYSTEM[cause.code] : undefined;
    const said = system ?? words.find(([pattern]) => pattern.test(cause.message))?.[1];
    if (said !== undefined) return said;
  }
  for (const cause of causes) {
    if (!(cause instanceof RdError)) continue;
    if (cause.code === 'ERR_PORT_IN_USE' && !isTouched) return PORT;
    const known = ENVIRONMENT[cause.code];
    if (known !== undefined) return known;
  }
  // A step that took too long was canceled as well; that is its cause, and not the failure.
  return error.code === 'ERR_CANCELLED' ? 'the work was canceled' : undefined;
}

function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

/** Keeps the settings that no rollback may undo: a disk never shrinks, and extensions are installed separately. */
function withLasting(earlier: Settings, now: Settings): Settings {
  const { extensions } = now.application;
  const size = (settings: Settings) => parseByteSize(settings.experimental.virtualMachine.diskSize) ?? 0;
  const { diskSize } =
    size(now) > size(earlier) ? now.experimental.virtualMachine : earlier.experimental.virtualMachine;
  return {
    ...earlier,
    application: {
      ...earlier.application,
      extensions: { ...earlier.application.extensions, installed: extensions.installed },
    },
    experimental: {
      ...earlier.experimental,
      virtualMachine: { ...earlier.experimental.virtualMachine, diskSize },
    },
  };
}

type ObstacleInput = Pick<RollbackInput, 'failed' | 'locks' | 'isRestoreUnproven' | 'driver' | 'observed'>;

/** Returns the reason, as a clause, that going back is forbidden, or undefined. */
export function rollbackObstacle(
  to: DesiredBackend,
  { failed, locks, isRestoreUnproven, driver, observed }: ObstacleInput,
): string | undefined {
  if (isRestoreUnproven) return 'a snapshot was restored and has not been seen running yet';
  const locked = recordedChanges(failed, to).find(({ path }) => isLocked(locks, path));
  if (locked) return `going back would change "${locked.path}", which is locked`;
  if (!consequencesOf(goalOf(to, driver), observed, driver).cluster.mustReset) return undefined;
  return `going back to Kubernetes ${to.settings.kubernetes.version} would delete the data of the cluster`;
}

/** True if two desired states are equal; stored ones have been through JSON. */
export function isSame(one: DesiredBackend, other: DesiredBackend): boolean {
  const plain = (state: DesiredBackend) => JSON.parse(JSON.stringify(backendOf(state)));
  return isDeepStrictEqual(plain(one), plain(other));
}
