import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { RdError } from '../../../errors.ts';
import { defined } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Fetch } from '../../../os/fetch-text.ts';
import type { ClusterDriver, ClusterSpec, ClusterStatus, EngineName } from '../../driver.ts';
import type { ClusterEngine, Shell } from '../../shell.ts';
import {
  apiClient,
  type Credentials,
  clusterHealth,
  connectService,
  type Health,
  hostKubeconfig,
  readCredentials,
} from './api.ts';
import { type Architecture, artifactStore, HOST_ARCHITECTURE } from './artifacts.ts';
import { k3sArguments, k3sConfig, k3sPlaces, pluginsOf, REMOVE_STATE_SCRIPT } from './config.ts';
import { type Installed, install, installedRelease, removeOthers, versionOf } from './installation.ts';
import {
  clusterRecord,
  endPods,
  leftoverArea,
  NETWORK_SCRIPT,
  type StartedCluster,
  waitUntilReady,
} from './lifecycle.ts';
import { compareK3s, type K3sVersion, k3sReleases, newestFirst } from './releases.ts';
import type { K3sSources } from './sources.ts';

export interface K3sOptions {
  engines: Readonly<Record<EngineName, ClusterEngine>>;
  sources: K3sSources;
  /** Host directory for release lists and files; created when needed. */
  cache: string;
  /** Host file that records the installed release; it must move with the machine's data. */
  memo: string;
  /** File on this host for the kubeconfig; private. */
  kubeconfig: string;
  /** Name of cluster, user and context in the kubeconfig. */
  name: string;
  /** True if the machine is on; absent for a machine that always is. */
  isOn?(signal: AbortSignal): Promise<boolean>;
  /** True if a running machine responds; absent for one that always does. */
  answers?(signal: AbortSignal): Promise<boolean>;
  /** True if nothing else in the machine runs a cluster: leftovers of k3s in its network are removed. */
  ownsNetwork: boolean;
  architecture?: Architecture;
  /** Path where k3s looks for its node password, if not in the default location. */
  nodePassword?: string;
  fetch?: Fetch;
  /** Returns milliseconds since 1970. */
  now?(): number;
  /** Milliseconds that a start waits for the cluster to be ready. */
  readyMs?: number;
}

const PROGRAM = 'k3s';
const READY_MS = 8 * 60_000;
const GRACE_MS = 30_000;
/** Volumes of pods can have many files. */
const REMOVE_MS = 4 * 60_000;
/** A start of the service waits for the list; a start of the cluster can wait longer. */
const LIST_LIMIT_MS = 1_500;
const FIND_LIMIT_MS = 20_000;

/**
 * Runs k3s with one node, on the engine of the machine. Pods end with the cluster; the data that they need to restart stays until a reset. State
 * derives from the record of the start, the process and the API server; nothing is cached.
 */
export function k3sCluster(shell: Shell, options: K3sOptions): ClusterDriver {
  const { engines, fetch = globalThis.fetch, now = Date.now, architecture = HOST_ARCHITECTURE } = options;
  const places = k3sPlaces(shell.places);
  if (options.nodePassword !== undefined) places.systemNodePassword = options.nodePassword;
  const record = clusterRecord(shell, places.record);
  const installed = installedRelease(shell, places, options.memo);
  const releases = k3sReleases({
    url: options.sources.channels,
    cacheFile: join(options.cache, 'channels.json'),
    fetch,
    now,
  });
  const artifacts = artifactStore({
    url: options.sources.releases,
    directory: options.cache,
    fetch,
    sleep: (ms, signal) => shell.clock.sleep(ms, signal),
  });
  const area = leftoverArea(places, shell.places.run);

  const isOff = async (signal: AbortSignal) => options.isOn !== undefined && !(await options.isOn(signal));

  async function observe(signal: AbortSignal): Promise<ClusterStatus> {
    const offline = await statusWithoutQuery(signal);
    if (offline) return offline;
    try {
      return await look(signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError)) throw error;
      // The cluster may have exited in the meantime.
      const nowOffline = await statusWithoutQuery(signal);
      if (nowOffline) return nowOffline;
      throw error;
    }
  }

  /** Returns the status if it is known without a query, or undefined. */
  async function statusWithoutQuery(signal: AbortSignal): Promise<ClusterStatus | undefined> {
    if (await isOff(signal)) return stopped(await installed.recall());
    if (options.answers === undefined || (await options.answers(signal))) return undefined;
    const there = await installed.recall();
    const installedVersion = there === undefined ? '' : versionOf(there);
    return { state: 'unresponsive', installedVersion, message: 'the machine does not respond' };
  }

  async function look(signal: AbortSignal): Promise<ClusterStatus> {
    const [there, started] = await Promise.all([installed.look(), record.read()]);
    if (started === undefined) return stopped(there);
    const installedVersion = there === undefined ? '' : versionOf(there);
    if (started === 'unreadable') {
      return { state: 'unresponsive', installedVersion, message: 'the start record of k3s is damaged' };
    }
    if ((await shell.find(PROGRAM)).state !== 'running') {
      const last = (await shell.tail(PROGRAM)).at(-1);
      const words = last === undefined ? '' : `; last log line: ${last}`;
      return { state: 'unresponsive', installedVersion, message: `k3s has exited (see k3s.log)${words}` };
    }
    const { spec } = started;
    const credentials = await storedCredentials();
    const health = await healthOf(spec, credentials, signal);
    if (!health.ready) return { state: 'running', installedVersion, spec, ready: false, message: health.waiting };
    const kubeconfig = credentials && (await offerKubeconfig(spec, credentials));
    return {
      state: 'running',
      installedVersion,
      spec,
      ready: true,
      ...defined({ kubeconfig }),
    };
  }

  async function start(spec: ClusterSpec, signal: AbortSignal, onWait?: (what: string) => void): Promise<void> {
    refuseUnsupported(spec);
    const started = await record.read();
    const running = (await shell.find(PROGRAM)).state === 'running';
    if (started === undefined || started === 'unreadable' || !running || !isDeepStrictEqual(started.spec, spec)) {
      await launch(spec, signal);
    }
    await waitUntilReady(
      shell,
      PROGRAM,
      async () => healthOf(spec, await storedCredentials(), signal),
      { limitMs: options.readyMs ?? READY_MS, ...(onWait ? { onWait } : {}) },
      signal,
    );
    const credentials = await storedCredentials();
    if (credentials) await offerKubeconfig(spec, credentials);
    shell.log('info', 'the cluster is ready', { version: spec.version });
  }

  async function launch(spec: ClusterSpec, signal: AbortSignal): Promise<void> {
    // Stop even if the state is stopped: a crash may have left a record and half a cluster.
    await stop(signal);
    const release = await chooseVersion(spec, await installed.look(), signal);
    const program = await install({ shell, places, artifacts, architecture, engines }, release, spec.engine, signal);
    // Before the cluster runs, because programs of this host get the port.
    await shell.localPort(spec.port);
    await record.write({ spec, release: release.text });
    await keepNodePassword();
    if (spec.engine === 'containerd') await shell.run(['ln', '-sfn', '--', pluginsOf(places, release), places.plugins]);
    await shell.write(places.config, k3sConfig(spec, places, engines[spec.engine].socket));
    // The old kubeconfig points to a server that is gone.
    await shell.remove(places.kubeconfig);
    await installed.note(release);
    await shell.start([{ name: PROGRAM, argv: k3sArguments(program, places) }], { signal });
    await removeOthers({ shell, places }, release);
  }

  /** Returns the installed release if it satisfies the spec, so that nothing is upgraded implicitly; never one older than the data. */
  async function chooseVersion(spec: ClusterSpec, there: Installed, signal: AbortSignal): Promise<K3sVersion> {
    if (there === 'unknown') {
      throw new RdError('ERR_DRIVER_TERMINAL', 'the data of the cluster belongs to an unknown version of Kubernetes', {
        advice: 'Reset the cluster; this deletes its workloads and keeps images.',
      });
    }
    if (there && spec.version === there.version) return there;
    const kept = await artifacts.kept(architecture);
    const release = await releases.find(spec.version, kept, FIND_LIMIT_MS, signal);
    if (!there || compareK3s(release, there) >= 0) return release;
    throw new RdError('ERR_DRIVER_TERMINAL', `Kubernetes ${release.text} cannot use the data of ${there.text}`, {
      advice: 'Reset the cluster first, or set kubernetes.version to the installed version or a later one.',
    });
  }

  /** Preserves the password by which k3s identifies its machine: the system's own file is lost with the root disk, the data stays. */
  async function keepNodePassword(): Promise<void> {
    const [own, system] = await Promise.all([shell.read(places.nodePassword), shell.read(places.systemNodePassword)]);
    const text = own ?? system ?? `${randomBytes(16).toString('hex')}\n`;
    if (own !== text) await shell.write(places.nodePassword, text);
    if (system !== text) await shell.write(places.systemNodePassword, text);
  }

  async function stop(signal: AbortSignal): Promise<void> {
    if (await isOff(signal)) return;
    const started = await record.read();
    if (started === undefined) return;
    await shell.stop(PROGRAM, GRACE_MS, signal);
    for (const engine of enginesOf(started)) await endPods(shell, engine, 'stop', signal);
    await clear(signal);
    await shell.remove(places.config);
    await record.remove();
    if (started !== 'unreadable') await shell.closePort(started.spec.port);
  }

  function enginesOf(started: StartedCluster | 'unreadable'): ClusterEngine[] {
    return started === 'unreadable' ? Object.values(engines) : [engines[started.spec.engine]];
  }

  async function clear(signal: AbortSignal): Promise<void> {
    await shell.clear(area);
    if (options.ownsNetwork) await shell.run(['sh', '-s'], { input: NETWORK_SCRIPT, signal });
  }

  async function reset(signal: AbortSignal): Promise<void> {
    if ((await record.read()) !== undefined) {
      throw new RdError('ERR_DRIVER_FAILED', 'the cluster is still running', { advice: 'Stop it first.' });
    }
    for (const engine of Object.values(engines)) await endPods(shell, engine, 'remove', signal);
    await clear(signal);
    await shell.run(['sh', '-s', '--', places.state], {
      input: REMOVE_STATE_SCRIPT,
      timeoutMs: REMOVE_MS,
      signal,
    });
    for (const path of [places.kubelet, places.kubeconfig]) await shell.remove(path);
    await rm(options.kubeconfig, { force: true });
    // Last, because the reset is incomplete while the record exists.
    await installed.forget();
  }

  async function storedCredentials(): Promise<Credentials | undefined> {
    const text = await shell.read(places.kubeconfig);
    return text === undefined ? undefined : readCredentials(text);
  }

  async function healthOf({ port }: ClusterSpec, keys: Credentials | undefined, signal: AbortSignal): Promise<Health> {
    if (!keys) return { ready: false, waiting: 'k3s has not written its kubeconfig' };
    return clusterHealth(apiClient(shell, port, keys), signal);
  }

  /** Writes the kubeconfig and returns its path; undefined if programs of this host cannot reach the cluster. */
  async function offerKubeconfig({ port }: ClusterSpec, credentials: Credentials): Promise<string | undefined> {
    try {
      await shell.localPort(port);
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      shell.log('warn', 'programs of this computer cannot reach the cluster', { reason: error.message });
      return undefined;
    }
    const text = hostKubeconfig(credentials, port, options.name);
    if ((await readIfThere(options.kubeconfig)) !== text) await writeFileAtomic(options.kubeconfig, text);
    return options.kubeconfig;
  }

  return {
    observe,
    async versions(signal) {
      const known = await releases.known(LIST_LIMIT_MS, signal);
      if (!known.failure) return known.releases.map(({ version }) => version);
      shell.log('warn', 'the list of k3s releases could not be fetched', { reason: known.failure.message });
      // Without the network only downloaded releases can be installed.
      const there = await installed.recall();
      const kept = [...(await artifacts.kept(architecture)), ...(there && there !== 'unknown' ? [there] : [])];
      return (kept.length > 0 ? newestFirst(kept) : known.releases).map(({ version }) => version);
    },
    async perform(step, signal, onWait) {
      switch (step.do) {
        case 'start':
          return start(step.spec, signal, onWait);
        case 'stop':
          return stop(signal);
        case 'reset':
          return reset(signal);
      }
    },
    async connect(target, signal) {
      const started = await record.read();
      const keys = started === undefined ? undefined : await storedCredentials();
      if (started === undefined || started === 'unreadable' || !keys) {
        throw new RdError('ERR_NOT_READY', 'the cluster is not running');
      }
      return connectService(apiClient(shell, started.spec.port, keys), shell, target, signal);
    },
  };
}

function stopped(there: Installed): ClusterStatus {
  return there === undefined ? { state: 'absent' } : { state: 'stopped', installedVersion: versionOf(there) };
}

function refuseUnsupported({ spinkube, localhostOnly }: ClusterSpec): void {
  if (!spinkube && !localhostOnly) return;
  const what = spinkube ? 'the Spin operator' : 'an ingress on the loopback address only';
  throw new RdError('ERR_DRIVER_TERMINAL', `this cluster does not support ${what}`, {
    advice: `Set ${spinkube ? 'experimental.kubernetes.options.spinkube' : 'kubernetes.ingress.localhostOnly'} to false.`,
  });
}
