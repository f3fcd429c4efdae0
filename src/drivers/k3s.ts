import { join } from 'node:path';
import { type K3sOptions, k3sCluster } from './clusters/k3s/k3s.ts';
import { k3sPlaces, networkConfigOf } from './clusters/k3s/places.ts';
import { k3sSources } from './clusters/k3s/sources.ts';
import type { ClusterDriver, DriverContext } from './driver.ts';
import type { PodNetwork } from './engines/containerd-config.ts';
import { containerdPods } from './engines/containerd-pods.ts';
import { mobyPods } from './engines/moby-pods.ts';
import type { Shell, ShellPlaces } from './shell.ts';

export interface ClusterParts extends Pick<K3sOptions, 'isOn' | 'answers' | 'ownsNetwork' | 'name' | 'memo' | 'cache'> {
  context: Pick<DriverContext, 'directory' | 'env' | 'now'>;
}

/** The cluster of a machine whose engines are those of this folder, created with `podNetwork`. */
export function k3sOn(shell: Shell, { context, ...parts }: ClusterParts): ClusterDriver {
  return k3sCluster(shell, {
    ...parts,
    engines: { moby: mobyPods(shell), containerd: containerdPods(shell) },
    sources: k3sSources(context.env),
    kubeconfig: join(context.directory, 'kubeconfig.json'),
    now: context.now,
  });
}

/** Options that `containerdEngine` needs to run the cluster's pods. */
export function podNetwork(places: ShellPlaces): PodNetwork {
  const k3s = k3sPlaces(places);
  return { configuration: networkConfigOf(k3s), plugins: k3s.plugins };
}
