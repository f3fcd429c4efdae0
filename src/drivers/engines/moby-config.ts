import { join } from 'node:path';
import { PRODUCT } from '../../product.ts';
import type { EngineSpec } from '../driver.ts';
import type { EngineNetwork, ShellPlaces } from '../shell.ts';
import type { ContainerdPlaces } from './containerd-daemon.ts';
import { containerdPlaces } from './containerd-daemon.ts';
import type { Gateway } from './pull-guard.ts';
import { proxyAddress } from './pull-guard.ts';

/** Paths of one private dockerd. */
export interface MobyPlaces {
  /** Everything below is runtime state and is removed when it stops. */
  run: string;
  data: string;
  exec: string;
  config: string;
  socket: string;
  pidFile: string;
  containerd: ContainerdPlaces;
  /** Name of the authorization plugin, and its socket in this process. */
  plugin: string;
  /** Certificate of the gateway's authority. */
  authority: string;
  pluginSocket: string;
  /** Plugin discovery file for dockerd; exists only until its first query. */
  pluginSpec: string;
  /** The file in which dockerd keeps its networks. */
  networkStore: string;
  isolated: IsolatedPlaces;
}

/** Paths of the temporary dockerd that removes the default network from the store. Deleted afterwards. */
interface IsolatedPlaces {
  run: string;
  data: string;
  config: string;
  socket: string;
  /** Mount point of its network namespace. */
  namespace: string;
}

/** Shared by every dockerd of a machine; not configurable. */
const PLUGIN_SPECS = '/etc/docker/plugins';

export function mobyPlaces({ id, data, run }: ShellPlaces): MobyPlaces {
  const own = join(run, 'moby');
  const plugin = `${PRODUCT.name}-${id}`;
  const isolated = join(run, 'isolated');
  return {
    run: own,
    data: join(data, 'moby'),
    exec: join(own, 'exec'),
    config: join(own, 'daemon.json'),
    socket: join(own, 'docker.sock'),
    pidFile: join(own, 'docker.pid'),
    containerd: containerdPlaces(join(data, 'moby-containerd'), join(own, 'c')),
    plugin,
    authority: join(own, 'gateway-ca.pem'),
    pluginSocket: join(own, 'plugin.sock'),
    pluginSpec: join(PLUGIN_SPECS, `${plugin}.spec`),
    networkStore: mobyNetworks(data),
    isolated: {
      run: isolated,
      data: join(data, 'moby-isolated'),
      config: join(isolated, 'daemon.json'),
      socket: join(isolated, 'docker.sock'),
      namespace: join(isolated, 'net'),
    },
  };
}

/** File in which a dockerd keeps its networks, below its `data-root`. */
export const NETWORK_STORE = join('network', 'files', 'local-kv.db');

/** Returns the file below the machine's data in which moby keeps the ids of its networks. */
export function mobyNetworks(data: string): string {
  return join(data, 'moby', NETWORK_STORE);
}

/** Stop timeout of containers when the engine stops; then dockerd kills them. */
export const SHUTDOWN_SECONDS = 20;

/** Size of each network allocated from the pool. */
const NETWORK_PREFIX = 24;

/** The machine owns the packet filter: two engines that both change it break each other's rules. */
const HANDS_OFF = { iptables: false, ip6tables: false, 'ip-masq': false, 'ip-forward': false };

/** Returns the content of `daemon.json`. */
export function mobyConfig(spec: EngineSpec, places: MobyPlaces, network: EngineNetwork, cgroup: string) {
  return {
    'data-root': places.data,
    'exec-root': places.exec,
    // Release 20.10 creates one, by default in /etc/docker; newer ones do not, and ignore the option.
    'deprecated-key-path': join(places.data, 'key.json'),
    pidfile: places.pidFile,
    hosts: [`unix://${places.socket}`],
    // The default group would give access to the system's `docker` group.
    group: 'root',
    // Without this, dockerd uses a system containerd when it finds one.
    containerd: places.containerd.socket,
    bridge: network.bridge,
    'default-address-pools': [{ base: network.pool, size: NETWORK_PREFIX }],
    ...HANDS_OFF,
    'userland-proxy': true,
    'live-restore': false,
    'shutdown-timeout': SHUTDOWN_SECONDS,
    'exec-opts': ['native.cgroupdriver=cgroupfs'],
    'cgroup-parent': cgroup,
    ...(spec.allowedImages.enabled ? { 'authorization-plugins': [places.plugin] } : {}),
    // Newer engines store images of a fresh data root in containerd by default; older ones ignore the option.
    ...(spec.storageDriver === 'auto'
      ? {}
      : { features: { 'containerd-snapshotter': spec.storageDriver === 'snapshotter' } }),
  };
}

/** Returns the content of `daemon.json` for a dockerd without a default network whose data holds only networks. */
export function isolatedConfig({ isolated, containerd }: MobyPlaces) {
  return {
    'data-root': isolated.data,
    'exec-root': isolated.run,
    'deprecated-key-path': join(isolated.data, 'key.json'),
    pidfile: join(isolated.run, 'docker.pid'),
    hosts: [`unix://${isolated.socket}`],
    group: 'root',
    containerd: containerd.socket,
    bridge: 'none',
    ...HANDS_OFF,
    // The only storage driver without requirements for kernel, file system and containerd.
    'storage-driver': 'vfs',
    features: { 'containerd-snapshotter': false },
  };
}

/** Returns the arguments of dockerd. The namespaces are among them, because they have no working key in `daemon.json` of release 20.10. */
export function mobyArguments(places: MobyPlaces): string[] {
  return [
    'dockerd',
    '--config-file',
    places.config,
    '--containerd-namespace',
    'moby',
    '--containerd-plugins-namespace',
    'plugins.moby',
  ];
}

/**
 * Returns the environment that makes the gateway the only route to registries, without the proxy exceptions of the service's environment. Go reads
 * `SSL_CERT_FILE` in addition to the system's directories of certificates; registries on the loopback interface are still checked by those.
 */
export function gatewayEnvironment(gateway: Gateway, { authority }: MobyPlaces): Record<string, string> {
  const address = proxyAddress(gateway);
  return {
    HTTP_PROXY: address,
    HTTPS_PROXY: address,
    http_proxy: address,
    https_proxy: address,
    NO_PROXY: '',
    no_proxy: '',
    SSL_CERT_FILE: authority,
  };
}
