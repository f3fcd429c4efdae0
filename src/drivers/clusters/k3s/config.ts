import { posix } from 'node:path';
import { PRODUCT } from '../../../product.ts';
import type { ClusterSpec } from '../../driver.ts';
import type { K3sPlaces } from './places.ts';
import type { K3sVersion } from './version.ts';

/**
 * The configuration file of k3s, keyed by its long flags. JSON, which is valid YAML. `socket` is the engine's: with `docker` k3s ships the
 * CRI adapter that Kubernetes needs; containerd has its own.
 */
export function k3sConfig(spec: ClusterSpec, places: K3sPlaces, socket: string): string {
  const settings = {
    'data-dir': places.state,
    'https-listen-port': spec.port,
    'write-kubeconfig': places.kubeconfig,
    'write-kubeconfig-mode': '0600',
    // Not the machine's host name: a disk moved to another machine keeps its node.
    'node-name': PRODUCT.name,
    ...(spec.traefik ? {} : { disable: ['traefik'] }),
    // The network policy controller needs the network that it would not have.
    ...(spec.flannel ? {} : { 'flannel-backend': 'none', 'disable-network-policy': true }),
    ...(spec.engine === 'moby' ? { docker: true } : {}),
    'container-runtime-endpoint': socket,
    'kubelet-arg': [
      // Next to the rest, so that copies and resets include it.
      `root-dir=${places.kubelet}`,
      // As the engines do; under a service manager k3s chooses another one.
      'cgroup-driver=cgroupfs',
      // The engine's images belong to the user: no garbage collection when a disk fills.
      'image-gc-high-threshold=100',
    ],
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

/** The command that runs the cluster. Contains no secrets. */
export function k3sArguments(program: string, places: K3sPlaces): string[] {
  return [program, 'server', '--config', places.config];
}

/** First releases with CNI plugins in `data/cni`, by minor version; older ones keep them beside their programs. */
const OWN_PLUGINS: Readonly<Record<number, number>> = { 28: 15, 29: 10, 30: 6, 31: 2 };

/** Where a release unpacks its CNI plugins. */
export function pluginsOf({ state }: K3sPlaces, { numbers: [major, minor, patch] }: K3sVersion): string {
  const first = OWN_PLUGINS[minor] ?? (major > 1 || minor > 31 ? 0 : Number.POSITIVE_INFINITY);
  return patch >= first ? posix.join(state, 'data', 'cni') : posix.join(state, 'data', 'current', 'bin');
}
