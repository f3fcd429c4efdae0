import { posix } from 'node:path';
import { PRODUCT } from '../../../product.ts';
import type { ClusterSpec } from '../../driver.ts';
import type { K3sPlaces } from './places.ts';
import type { K3sVersion } from './version.ts';

/**
 * The configuration file of k3s: the long names of its arguments. It is YAML, of which JSON is a part. `socket` is that of the engine:
 * with `docker` k3s brings the interface that Kubernetes needs, and a containerd has it.
 */
export function k3sConfig(spec: ClusterSpec, places: K3sPlaces, socket: string): string {
  const settings = {
    'data-dir': places.state,
    'https-listen-port': spec.port,
    'write-kubeconfig': places.kubeconfig,
    'write-kubeconfig-mode': '0600',
    // Not the name of the machine: a disk that moves to another one brings its node along.
    'node-name': PRODUCT.name,
    ...(spec.traefik ? {} : { disable: ['traefik'] }),
    // What enforces network policies needs the network that it would not have.
    ...(spec.flannel ? {} : { 'flannel-backend': 'none', 'disable-network-policy': true }),
    ...(spec.engine === 'moby' ? { docker: true } : {}),
    'container-runtime-endpoint': socket,
    'kubelet-arg': [
      // Beside the rest, so that copies and resets find it.
      `root-dir=${places.kubelet}`,
      // As the engines have it; k3s takes another one under a service manager.
      'cgroup-driver=cgroupfs',
      // The engine's images are the user's: none goes because a disk fills.
      'image-gc-high-threshold=100',
    ],
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

/** The command that runs the cluster. Nothing in it is secret. */
export function k3sArguments(program: string, places: K3sPlaces): string[] {
  return [program, 'server', '--config', places.config];
}

/** First releases whose network plugins are in `data/cni`, by minor version; older ones have them beside their programs. */
const OWN_PLUGINS: Readonly<Record<number, number>> = { 28: 15, 29: 10, 30: 6, 31: 2 };

/** Where a release unpacks its network plugins. */
export function pluginsOf({ state }: K3sPlaces, { numbers: [major, minor, patch] }: K3sVersion): string {
  const first = OWN_PLUGINS[minor] ?? (major > 1 || minor > 31 ? 0 : Number.POSITIVE_INFINITY);
  return patch >= first ? posix.join(state, 'data', 'cni') : posix.join(state, 'data', 'current', 'bin');
}
