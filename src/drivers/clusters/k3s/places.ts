import { posix } from 'node:path';
import type { ShellPlaces } from '../../shell.ts';

/** Paths of a cluster in the machine. Everything persistent is below `root`. */
export interface K3sPlaces {
  root: string;
  /** One directory per installed release. */
  programs: string;
  /** k3s' own data: database, certificates, unpacked programs. A containerd creates the CNI directory in it, cluster or not. */
  state: string;
  /** What is lost with a cluster: database and certificates, in the state. */
  server: string;
  kubelet: string;
  /** Names the release that may have written into the state. */
  version: string;
  /** Names the release whose images were loaded, per engine. */
  imagesOf(engine: string): string;
  /** The node password, by which k3s recognizes its machine. */
  nodePassword: string;
  /** The only place where k3s looks for it. */
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

/** The program of a release. */
export function programOf({ programs }: K3sPlaces, release: string): string {
  return posix.join(programs, release, 'k3s');
}

/** CNI configuration, which k3s writes for flannel. */
export function networkConfigOf({ state }: Pick<K3sPlaces, 'state'>): string {
  return posix.join(state, 'agent', 'etc', 'cni', 'net.d');
}
