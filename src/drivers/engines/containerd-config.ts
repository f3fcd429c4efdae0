import { join } from 'node:path';
import type { Gateway } from './gateway-secret.ts';
import { secretCookie } from './gateway-secret.ts';

/** Paths of one private containerd. */
export interface ContainerdPlaces {
  /** Images, snapshots and the metadata of containers. */
  root: string;
  /** What is about running containers only. */
  state: string;
  config: string;
  socket: string;
  /** Says to clients how registries are reached; exists while pulls are kept to a list. */
  hosts: string;
}

export function containerdPlaces(data: string, run: string): ContainerdPlaces {
  return {
    root: data,
    state: join(run, 'state'),
    config: join(run, 'containerd.toml'),
    socket: join(run, 'containerd.sock'),
    hosts: join(run, 'hosts.d'),
  };
}

/** Sockets that a killed containerd leaves; a new one must not find them. */
export function containerdSockets({ socket }: ContainerdPlaces): string[] {
  return [socket, `${socket}.ttrpc`];
}

const CRI = 'io.containerd.grpc.v1.cri';

/** Kubernetes' interface and the snapshotters that need a file system of their own are of no use here and only log errors. */
const DISABLED = [
  CRI,
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper',
];

/** A JSON string is a TOML basic string, except that TOML knows no `\/`, which JSON.stringify never writes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** What pods need of a containerd that a cluster runs on. Paths in the machine. */
export interface PodNetwork {
  /** Where the configuration of their network is. */
  configuration: string;
  /** Where the programs are that it names. */
  plugins: string;
}

/** The image that holds the namespaces of a pod: the one that comes with the images of k3s. */
const SANDBOX_IMAGE = 'docker.io/rancher/mirrored-pause:3.6';

/** Where the interface for Kubernetes serves `kubectl exec`, on the loopback. */
const STREAM_PORT = '10010';

/** The text of `containerd.toml`. The debug socket is switched off: its default place is shared by the whole host. */
export function containerdConfig(places: ContainerdPlaces, pods?: PodNetwork): string {
  const disabled = pods ? DISABLED.filter((plugin) => plugin !== CRI) : DISABLED;
  return [
    'version = 2',
    `root = ${quoted(places.root)}`,
    `state = ${quoted(places.state)}`,
    `disabled_plugins = [${disabled.map(quoted).join(', ')}]`,
    '[grpc]',
    `  address = ${quoted(places.socket)}`,
    '  uid = 0',
    '  gid = 0',
    '[ttrpc]',
    `  address = ${quoted(`${places.socket}.ttrpc`)}`,
    '[debug]',
    '  address = ""',
    '  level = "info"',
    ...(pods ? podLines(pods) : []),
    '',
  ].join('\n');
}

function podLines({ configuration, plugins }: PodNetwork): string[] {
  return [
    `[plugins.${quoted(CRI)}]`,
    `  sandbox_image = ${quoted(SANDBOX_IMAGE)}`,
    // That of k3s' own containerd. One of its choice would be taken for the port of a program of the user.
    `  stream_server_port = ${quoted(STREAM_PORT)}`,
    `  [plugins.${quoted(CRI)}.cni]`,
    `    conf_dir = ${quoted(configuration)}`,
    `    bin_dir = ${quoted(plugins)}`,
  ];
}

/** What clients of that containerd have to give as `--hosts-dir` when the directory exists. */
export function hostsDirectory({ hosts }: ContainerdPlaces): string {
  return hosts;
}

/** The file in `hostsDirectory` that is for every registry without one of its own. */
export function hostsFile({ hosts }: ContainerdPlaces): string {
  return join(hosts, '_default', 'hosts.toml');
}

/** Leads every request to the gateway; `server` as well, or a client would go on to the registry itself. */
export function hostsConfig({ port, secret }: Gateway): string {
  const address = quoted(`http://127.0.0.1:${port}`);
  const cookie = `  Cookie = ${quoted(secretCookie(secret))}`;
  return [
    `server = ${address}`,
    '[header]',
    cookie,
    `[host.${address}]`,
    '  capabilities = ["pull", "resolve"]',
    `[host.${address}.header]`,
    cookie,
    '',
  ].join('\n');
}
