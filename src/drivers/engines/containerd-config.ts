import { join } from 'node:path';
import type { Gateway } from './gateway-secret.ts';
import { secretCookie } from './gateway-secret.ts';

/** Paths of one private containerd. */
export interface ContainerdPlaces {
  /** Images, snapshots and the metadata of containers. */
  root: string;
  /** State of running containers only. */
  state: string;
  config: string;
  socket: string;
  /** Registry host configuration for clients; exists while pulls are restricted to a list. */
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

/** Stale sockets of a killed containerd; a new one must not find them. */
export function containerdSockets({ socket }: ContainerdPlaces): string[] {
  return [socket, `${socket}.ttrpc`];
}

const CRI = 'io.containerd.grpc.v1.cri';

/** The CRI plugin and the snapshotters for special file systems are unused here and only log errors. */
const DISABLED = [
  CRI,
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper',
];

/** A JSON string is a TOML basic string, except for `\/`, which TOML lacks and JSON.stringify never writes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** What pods need from the cluster's containerd. Paths in the machine. */
export interface PodNetwork {
  /** The CNI configuration directory. */
  configuration: string;
  /** The CNI plugin directory. */
  plugins: string;
}

/** The sandbox image that holds a pod's namespaces, shipped with the images of k3s. */
const SANDBOX_IMAGE = 'docker.io/rancher/mirrored-pause:3.6';

/** Loopback address of the CRI streaming server for `kubectl exec`. */
const STREAM_PORT = '10010';

/** The text of `containerd.toml`. Disables the debug socket, whose default path is host-wide. */
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
    // The port that k3s' own containerd uses. A random one would be forwarded as a user program's port.
    `  stream_server_port = ${quoted(STREAM_PORT)}`,
    `  [plugins.${quoted(CRI)}.cni]`,
    `    conf_dir = ${quoted(configuration)}`,
    `    bin_dir = ${quoted(plugins)}`,
  ];
}

/** The `--hosts-dir` value for clients of that containerd while the directory exists. */
export function hostsDirectory({ hosts }: ContainerdPlaces): string {
  return hosts;
}

/** The file in `hostsDirectory` for every registry without its own. */
export function hostsFile({ hosts }: ContainerdPlaces): string {
  return join(hosts, '_default', 'hosts.toml');
}

/** Routes every request to the gateway; also sets `server`, or clients would fall back to the registry itself. */
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
