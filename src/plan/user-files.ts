import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../settings/settings.gen.ts';
import type { Consequences } from './consequences.ts';
import type { UserFileChange } from './plan.gen.ts';

export type { UserFileChange };

/** The desired content of the user's files. An absent part stays as it is. */
export interface DesiredFiles {
  path: Settings['application']['pathManagementStrategy'];
  autoStart: boolean;
  docker?: DesiredDockerContext;
  kube?: DesiredKubeconfig;
}

/**
 * The context is selected while moby answers at the endpoint, restored when moby is stopped for good, and removed
 * otherwise.
 */
export type DesiredDockerContext =
  | { context: 'selected'; endpoint: string }
  | { context: 'given back' }
  | { context: 'removed' };

/** `starts` counts cluster starts, because each may have new certificates. */
type DesiredKubeconfig = { context: 'present'; file: string; starts: number } | { context: 'removed' };

export type FilesPart = 'path' | 'autostart' | 'docker' | 'kube';

/** The observed state of the user's files. */
export interface UserFileFacts {
  /** The content that the service last applied; absent before the first time. */
  done?: Partial<DesiredFiles>;
  /** The port of our cluster in the user's kubeconfig; absent if it is not there. */
  kubePort?: number;
  /** The changes that applying a part would make to the files as they are now. */
  foreseen: {
    path: Record<DesiredFiles['path'], readonly UserFileChange[]>;
    autostart: Record<'on' | 'off', readonly UserFileChange[]>;
    docker: Record<DesiredDockerContext['context'], readonly UserFileChange[]>;
    /** `renewed`: for a cluster with different keys, or at another port. */
    kube: Record<'present' | 'renewed' | 'removed', readonly UserFileChange[]>;
  };
}

/** Returns the part of the desired files that depends only on the settings. */
export function desiredFilesOf({ application, containerEngine, kubernetes }: Settings): DesiredFiles {
  return {
    path: application.pathManagementStrategy,
    autoStart: application.autoStart,
    ...(containerEngine.name === 'moby' ? {} : { docker: { context: 'removed' } }),
    ...(kubernetes.enabled ? {} : { kube: { context: 'removed' } }),
  };
}

/** Lists the parts that need applying. A plan lists them and the service applies them, so the two cannot disagree. */
export function dueParts(desired: DesiredFiles, done: Partial<DesiredFiles> | undefined): FilesPart[] {
  const due: Record<FilesPart, boolean> = {
    path: desired.path !== done?.path,
    // An entry made by `rdctl setup` stays until the setting changes.
    autostart: desired.autoStart ? done?.autoStart !== true : done?.autoStart === true,
    docker: desired.docker !== undefined && !isDeepStrictEqual(desired.docker, done?.docker),
    kube: desired.kube !== undefined && !isDeepStrictEqual(desired.kube, done?.kube),
  };
  return PARTS.filter((part) => due[part]);
}

const PARTS: readonly FilesPart[] = ['path', 'autostart', 'docker', 'kube'];

/** Whether a plan starts the cluster, and whether it is the existing one. */
type ClusterStart = 'none' | 'same' | 'new';

/** Returns the cluster start that a plan causes. */
export function clusterStart({ goal, observed, cluster }: Consequences): ClusterStart {
  if (!goal.on || !goal.cluster) return 'none';
  const { state } = observed.cluster;
  if (state === 'absent' || cluster.mustReset) return 'new';
  return state === 'running' && !cluster.mustStop ? 'none' : 'same';
}

/** Returns the changes of user files on the way to these settings and this power, without unchanged ones. */
export function userFilesOf(
  facts: UserFileFacts | undefined,
  { settings, on, cluster }: { settings: Settings; on: boolean; cluster: ClusterStart },
): UserFileChange[] {
  if (!facts) return [];
  const { done, foreseen, kubePort } = facts;
  const stable = desiredFilesOf(settings);
  const docker = stable.docker ?? (on ? selected(done) : { context: 'given back' as const });
  const moves = kubePort !== undefined && kubePort !== settings.kubernetes.port;
  const kube = stable.kube ?? (cluster === 'none' ? undefined : { context: 'present' as const, file: '', starts: 0 });
  const desired: DesiredFiles = { ...stable, docker, ...(kube ? { kube } : {}) };
  const changes: Record<FilesPart, readonly UserFileChange[]> = {
    path: foreseen.path[desired.path],
    autostart: foreseen.autostart[desired.autoStart ? 'on' : 'off'],
    docker: foreseen.docker[docker.context],
    kube: foreseen.kube[stable.kube ? 'removed' : cluster === 'new' || moves ? 'renewed' : 'present'],
  };
  return dueParts(desired, done).flatMap((part) => changes[part]);
}

/** A restarted engine keeps its endpoint. */
function selected(done: Partial<DesiredFiles> | undefined): DesiredDockerContext {
  return done?.docker?.context === 'selected' ? done.docker : { context: 'selected', endpoint: '' };
}
