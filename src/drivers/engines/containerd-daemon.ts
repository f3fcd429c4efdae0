import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { Arrangement, Shell } from '../shell.ts';
import { type EngineProgram, startReady } from './engine-steps.ts';
import { type Gateway, secretCookie } from './pull-guard.ts';

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

/** Returns sockets that a killed containerd leaves; a new one must not find them. */
function containerdSockets({ socket }: ContainerdPlaces): string[] {
  return [socket, `${socket}.ttrpc`];
}

const CRI = 'io.containerd.grpc.v1.cri';

/**
 * The CRI plugin and the snapshotters for special file systems are unused here and only log errors; the plugin for installed programs makes
 * `/opt/containerd`, which nobody would remove.
 */
const DISABLED = [
  CRI,
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.internal.v1.opt',
];

/** Quotes a TOML string. A JSON string is a TOML basic string, except for `\/`, which TOML lacks and JSON.stringify never writes. */
function quoteToml(text: string): string {
  return JSON.stringify(text);
}

/** The settings that pods need from the cluster's containerd. Paths in the machine. */
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

/** Returns the text of `containerd.toml`. Disables the debug socket, whose default path is host-wide. */
export function containerdConfig(places: ContainerdPlaces, pods?: PodNetwork): string {
  const disabled = pods ? DISABLED.filter((plugin) => plugin !== CRI) : DISABLED;
  return [
    'version = 2',
    `root = ${quoteToml(places.root)}`,
    `state = ${quoteToml(places.state)}`,
    `disabled_plugins = [${disabled.map(quoteToml).join(', ')}]`,
    '[grpc]',
    `  address = ${quoteToml(places.socket)}`,
    '  uid = 0',
    '  gid = 0',
    '[ttrpc]',
    `  address = ${quoteToml(`${places.socket}.ttrpc`)}`,
    '[debug]',
    '  address = ""',
    '  level = "info"',
    ...(pods ? podLines(pods) : []),
    '',
  ].join('\n');
}

function podLines({ configuration, plugins }: PodNetwork): string[] {
  return [
    `[plugins.${quoteToml(CRI)}]`,
    `  sandbox_image = ${quoteToml(SANDBOX_IMAGE)}`,
    // The port that k3s' own containerd uses. A random one would be forwarded as a user program's port.
    `  stream_server_port = ${quoteToml(STREAM_PORT)}`,
    `  [plugins.${quoteToml(CRI)}.cni]`,
    `    conf_dir = ${quoteToml(configuration)}`,
    `    bin_dir = ${quoteToml(plugins)}`,
  ];
}

/** Returns the path of the file in `hosts` for every registry without its own. */
export function hostsFile({ hosts }: ContainerdPlaces): string {
  return join(hosts, '_default', 'hosts.toml');
}

/**
 * Returns the configuration that routes every request to the gateway. It also sets `server`, because clients would otherwise fall back to the
 * registry itself.
 */
export function hostsConfig({ port, secret }: Gateway): string {
  const address = quoteToml(`http://127.0.0.1:${port}`);
  const cookie = `  Cookie = ${quoteToml(secretCookie(secret))}`;
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

const READY_MS = 60_000;

/** The HTTP/2 preface and empty settings: gRPC servers such as containerd keep a connection open after them. */
export const GRPC_HELLO = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/** Returns a command line of containerd's own client. */
export function ctrArguments(socket: string, args: readonly string[]): string[] {
  return ['ctr', '--address', socket, '--connect-timeout', '5s', ...args];
}

/** Returns the lines of a quiet listing of that client. */
export function linesOf(output: string): string[] {
  return output.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** The private containerd of an engine: moby runs its containers with one, and containerd is itself an engine. */
export interface ContainerdDaemon {
  readonly program: EngineProgram;
  /** Returns the daemon's required files, after the caller's. It starts nothing. */
  arrangement(beside: Arrangement): Arrangement;
  /** Writes the required files, starts it and waits until it accepts connections, which means that it is ready. */
  start(beside: Arrangement, signal: AbortSignal): Promise<void>;
  /** Returns its version, or undefined without a response. */
  version(signal: AbortSignal): Promise<string | undefined>;
  /** Runs `ctr` against the daemon. Throws the errors of `run`. */
  ctr(args: readonly string[], signal: AbortSignal): Promise<string>;
}

/** Creates a private containerd. `name` is the program's name on its machine, as in logs and messages. `pods`: a cluster runs on it. */
export function containerdDaemon(
  shell: Shell,
  places: ContainerdPlaces,
  name: string,
  pods?: PodNetwork,
): ContainerdDaemon {
  const program: EngineProgram = { name, argv: ['containerd', '--config', places.config], readyMs: READY_MS };

  async function ctr(args: readonly string[], signal: AbortSignal): Promise<string> {
    const argv = ctrArguments(places.socket, ['--timeout', '20s', ...args]);
    return (await shell.run(argv, { signal, timeoutMs: 30_000 })).stdout;
  }

  async function version(signal: AbortSignal): Promise<string | undefined> {
    try {
      const text = await ctr(['version'], signal);
      return /Server:\s+Version:\s+v?(\S+)/.exec(text)?.[1] ?? 'unknown';
    } catch (error) {
      // Only silence means that it is down: a missing program or a canceled wait does not.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return undefined;
      throw error;
    }
  }

  const arrangement = ({ absent, directories, files }: Arrangement): Arrangement => ({
    absent: [...absent, ...containerdSockets(places)],
    directories: [...directories, places.root, places.state],
    files: [...files, { path: places.config, text: containerdConfig(places, pods) }],
  });

  return {
    program,
    ctr,
    version,
    arrangement,
    start: (beside, signal) =>
      startReady(shell, { before: arrangement(beside), program, isReady: () => shell.listens(places.socket) }, signal),
  };
}
