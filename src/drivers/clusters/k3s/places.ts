import { posix } from 'node:path';
import type { ShellPlaces } from '../../shell.ts';

/** Where a cluster has its files in the machine. All that outlives a stop is below `root`. */
export interface K3sPlaces {
  root: string;
  /** A directory for each installed release. */
  programs: string;
  /** k3s' own: database, certificates, unpacked programs. A containerd makes the directory for the network of pods in it, cluster or not. */
  state: string;
  /** What is lost with a cluster: database and certificates, in the state. */
  server: string;
  kubelet: string;
  /** Names the release that may have written into the state. */
  version: string;
  /** Names the release whose images were loaded, for each engine. */
  imagesOf(engine: string): string;
  /** Says to k3s that this is the machine that it knows. */
  nodePassword: string;
  /** Where k3s looks for that, and only there. */
  systemNodePassword: string;
  kubeconfig: string;
  /** Leads to the network plugins that k3s unpacks, which are in other places in other releases. */
  plugins: string;
  /** Of what runs; gone with the machine's next start. */
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

/** Configuration of the network of pods, which k3s writes for flannel. */
export function networkConfigOf({ state }: Pick<K3sPlaces, 'state'>): string {
  return posix.join(state, 'agent', 'etc', 'cni', 'net.d');
}
