import { join } from 'node:path';

/** Paths of one private containerd. */
export interface ContainerdPlaces {
  /** Images, snapshots and the metadata of containers. */
  root: string;
  /** What is about running containers only. */
  state: string;
  config: string;
  socket: string;
}

export function containerdPlaces(data: string, run: string): ContainerdPlaces {
  return {
    root: data,
    state: join(run, 'state'),
    config: join(run, 'containerd.toml'),
    socket: join(run, 'containerd.sock'),
  };
}

/** Sockets that a killed containerd leaves; a new one must not find them. */
export function containerdSockets({ socket }: ContainerdPlaces): string[] {
  return [socket, `${socket}.ttrpc`];
}

/** Kubernetes' interface and the snapshotters that need a file system of their own are of no use here and only log errors. */
const DISABLED = [
  'io.containerd.grpc.v1.cri',
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper',
];

/** A JSON string is a TOML basic string, except that TOML knows no `\/`, which JSON.stringify never writes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** The text of `containerd.toml`. The debug socket is switched off: its default place is shared by the whole host. */
export function containerdConfig(places: ContainerdPlaces): string {
  return [
    'version = 2',
    `root = ${quoted(places.root)}`,
    `state = ${quoted(places.state)}`,
    `disabled_plugins = [${DISABLED.map(quoted).join(', ')}]`,
    '[grpc]',
    `  address = ${quoted(places.socket)}`,
    '  uid = 0',
    '  gid = 0',
    '[ttrpc]',
    `  address = ${quoted(`${places.socket}.ttrpc`)}`,
    '[debug]',
    '  address = ""',
    '  level = "info"',
    '',
  ].join('\n');
}
