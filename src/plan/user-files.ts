import { isDeepStrictEqual } from 'node:util';
import type { DriverInfo } from '../drivers/driver.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { clusterMustReset, clusterMustStop } from './consequences.ts';
import type { Observed } from './observed.ts';
import type { Goal } from './spec.ts';

/** A file of the user outside of our own directories, and what carrying out a plan does to it. */
export interface UserFileChange {
  /** Absolute; on Windows the autostart entry is a value of the registry. */
  file: string;
  action: 'create' | 'update' | 'delete';
  /** As a clause: `selects docker context rdctl`. */
  what: string;
}

/** What the files of the user are to say. A part that is absent stays as it is. */
export interface FilesWish {
  path: Settings['application']['pathManagementStrategy'];
  autoStart: boolean;
  docker?: DockerWish;
  kube?: KubeWish;
}

/** The context is selected while moby answers at the endpoint, given back while moby is stopped to stay so, else gone. */
export type DockerWish = { context: 'selected'; endpoint: string } | { context: 'given back' } | { context: 'removed' };

/** `starts` tells one start of the cluster from the next, which may have other certificates. */
type KubeWish = { context: 'present'; file: string; starts: number } | { context: 'removed' };

export type FilesPart = 'path' | 'autostart' | 'docker' | 'kube';

/** What somebody who can look at the files knows about them. */
export interface UserFileFacts {
  /** What the service has brought them in line with last; absent before it has. */
  done?: Partial<FilesWish>;
  /** At which the kubeconfig of the user looks for our cluster; absent where it does not. */
  kubePort?: number;
  /** What bringing a part in line would change in the files as they are now. */
  foreseen: {
    path: Record<FilesWish['path'], readonly UserFileChange[]>;
    autostart: Record<'on' | 'off', readonly UserFileChange[]>;
    docker: Record<DockerWish['context'], readonly UserFileChange[]>;
    /** `renewed`: of a cluster with other keys, or at another port. */
    kube: Record<'present' | 'renewed' | 'removed', readonly UserFileChange[]>;
  };
}

/** What follows from the settings alone, whatever runs. */
export function filesWishOf({ application, containerEngine, kubernetes }: Settings): FilesWish {
  return {
    path: application.pathManagementStrategy,
    autoStart: application.autoStart,
    ...(containerEngine.name === 'moby' ? {} : { docker: { context: 'removed' } }),
    ...(kubernetes.enabled ? {} : { kube: { context: 'removed' } }),
  };
}

/** The parts that a wish asks to be brought in line. A plan lists them and the service does them, so the two cannot disagree. */
export function dueParts(wish: FilesWish, done: Partial<FilesWish> | undefined): FilesPart[] {
  const due: Record<FilesPart, boolean> = {
    path: wish.path !== done?.path,
    // An entry made by `rdctl setup` stays as long as nobody changes the setting.
    autostart: wish.autoStart ? done?.autoStart !== true : done?.autoStart === true,
    docker: wish.docker !== undefined && !isDeepStrictEqual(wish.docker, done?.docker),
    kube: wish.kube !== undefined && !isDeepStrictEqual(wish.kube, done?.kube),
  };
  return PARTS.filter((part) => due[part]);
}

const PARTS: readonly FilesPart[] = ['path', 'autostart', 'docker', 'kube'];

/** Whether carrying out a plan starts the cluster, and if so, whether it is the one that was there before. */
type ClusterStart = 'none' | 'same' | 'new';

/** The start of the cluster that carrying out a plan brings about. */
export function clusterStart(goal: Goal, observed: Observed, driver: DriverInfo): ClusterStart {
  if (!goal.on || !goal.cluster) return 'none';
  const { cluster } = observed;
  if (cluster.state === 'absent' || clusterMustReset(goal, observed)) return 'new';
  return cluster.state === 'running' && !clusterMustStop(goal, observed, driver) ? 'none' : 'same';
}

/** The files of the user that are touched on the way to these settings and this power: only what really changes. */
export function userFilesOf(
  facts: UserFileFacts | undefined,
  { settings, on, cluster }: { settings: Settings; on: boolean; cluster: ClusterStart },
): UserFileChange[] {
  if (!facts) return [];
  const { done, foreseen, kubePort } = facts;
  const stable = filesWishOf(settings);
  const docker = stable.docker ?? (on ? selected(done) : { context: 'given back' as const });
  const moves = kubePort !== undefined && kubePort !== settings.kubernetes.port;
  const kube = stable.kube ?? (cluster === 'none' ? undefined : { context: 'present' as const, file: '', starts: 0 });
  const wish: FilesWish = { ...stable, docker, ...(kube ? { kube } : {}) };
  const changes: Record<FilesPart, readonly UserFileChange[]> = {
    path: foreseen.path[wish.path],
    autostart: foreseen.autostart[wish.autoStart ? 'on' : 'off'],
    docker: foreseen.docker[docker.context],
    kube: foreseen.kube[stable.kube ? 'removed' : cluster === 'new' || moves ? 'renewed' : 'present'],
  };
  return dueParts(wish, done).flatMap((part) => changes[part]);
}

/** An engine that is started again answers where it did before. */
function selected(done: Partial<FilesWish> | undefined): DockerWish {
  return done?.docker?.context === 'selected' ? done.docker : { context: 'selected', endpoint: '' };
}
