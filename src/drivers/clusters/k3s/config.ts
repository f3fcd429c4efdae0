import { posix } from 'node:path';
import semver from 'semver';
import { PRODUCT } from '../../../product.ts';
import type { ClusterSpec } from '../../driver.ts';
import type { ShellPlaces } from '../../shell.ts';
import type { K3sVersion } from './releases.ts';

/** Paths of a cluster in the machine. Everything persistent is below `root`. */
export interface K3sPlaces {
  root: string;
  /** One directory per installed release. */
  programs: string;
  /** k3s' own data: database, certificates, unpacked programs. A containerd creates the CNI directory in it, cluster or not. */
  state: string;
  /** The database and certificates: deleting a cluster deletes this directory. */
  server: string;
  kubelet: string;
  /** Names the release that may have written into the state. */
  version: string;
  /** Names the release whose images were loaded, per engine. */
  imagesOf(engine: string): string;
  /** The node password, by which k3s recognizes its machine. */
  nodePassword: string;
  /** The only path where k3s looks for the node password. */
  systemNodePassword: string;
  kubeconfig: string;
  /** Links to the CNI plugins that k3s unpacks, whose location depends on the release. */
  plugins: string;
  /** Runtime state; lost when the machine restarts. */
  record: string;
  config: string;
}

export function k3sPlaces({ data, run }: ShellPlaces): K3sPlaces {
  const root = posix.join(data, 'k3s');
  return {
    root,
    programs: posix.join(root, 'programs'),
    state: posix.join(root, 'state'),
    server: posix.join(root, 'state', 'server'),
    kubelet: posix.join(root, 'kubelet'),
    version: posix.join(root, 'version'),
    imagesOf: (engine) => posix.join(root, `images-${engine}`),
    nodePassword: posix.join(root, 'node-password'),
    systemNodePassword: '/etc/rancher/node/password',
    kubeconfig: posix.join(root, 'kubeconfig.yaml'),
    plugins: posix.join(root, 'cni-plugins'),
    record: posix.join(run, 'k3s.json'),
    config: posix.join(run, 'k3s.yaml'),
  };
}

/** Returns the path of the program of a release. */
export function programOf({ programs }: K3sPlaces, release: string): string {
  return posix.join(programs, release, 'k3s');
}

/** Directory of the CNI configuration, below the state of k3s. */
const NETWORK_CONFIG = ['agent', 'etc', 'cni', 'net.d'];

/** Returns the path of the CNI configuration, which k3s writes for flannel. */
export function networkConfigOf({ state }: Pick<K3sPlaces, 'state'>): string {
  return posix.join(state, ...NETWORK_CONFIG);
}

/**
 * Removes the state `$1` of k3s, except for the directory of the CNI configuration, which is emptied: a running containerd watches that very
 * directory and would never see another one in its place.
 */
export const REMOVE_STATE_SCRIPT = `set -u
[ -d "$1/${NETWORK_CONFIG.join('/')}" ] || exec rm -rf --one-file-system -- "$1"
cd -- "$1" || exit 1
exec find . -xdev -depth -mindepth 1 ! '(' -type d '(' ${NETWORK_CONFIG.map(
  (_, index) => `-path ./${NETWORK_CONFIG.slice(0, index + 1).join('/')}`,
).join(' -o ')} ')' ')' -delete
`;

/**
 * Returns the configuration file of k3s, keyed by its long flags. JSON, which is valid YAML. `socket` is the engine's: with `docker` k3s ships the
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
    // The network policy controller needs the network, which is then missing.
    ...(spec.flannel ? {} : { 'flannel-backend': 'none', 'disable-network-policy': true }),
    ...(spec.engine === 'moby' ? { docker: true } : {}),
    'container-runtime-endpoint': socket,
    'kubelet-arg': [
      // Beside the other data, so that copies and resets include it.
      `root-dir=${places.kubelet}`,
      // The driver that the engines use; k3s run by a service manager would choose another one.
      'cgroup-driver=cgroupfs',
      // The engine's images belong to the user: no garbage collection when a disk fills.
      'image-gc-high-threshold=100',
    ],
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

/** Returns the command that runs the cluster. Contains no secrets. */
export function k3sArguments(program: string, places: K3sPlaces): string[] {
  return [program, 'server', '--config', places.config];
}

/** Releases with CNI plugins in `data/cni`; older ones keep them beside their programs. */
const OWN_PLUGINS = '>=1.28.15 <1.29 || >=1.29.10 <1.30 || >=1.30.6 <1.31 || >=1.31.2';

/** Returns the directory in which a release unpacks its CNI plugins. */
export function pluginsOf({ state }: K3sPlaces, { version }: K3sVersion): string {
  const below = semver.satisfies(version, OWN_PLUGINS) ? 'cni' : posix.join('current', 'bin');
  return posix.join(state, 'data', below);
}
