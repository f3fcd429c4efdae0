import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type K3sOptions, k3sCluster } from '../../src/drivers/clusters/k3s/k3s.ts';
import type { ClusterSpec } from '../../src/drivers/driver.ts';
import { hostShell } from '../../src/drivers/machines/host/shell.ts';
import type { ClusterEngine, Shell } from '../../src/drivers/shell.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { findDaemon } from '../../src/os/daemon.ts';
import { run } from '../../src/os/run.ts';
import { freePort } from './free-port.ts';
import { CERTIFICATES, type ClusterCertificates } from './k3s-certificates.ts';
import { releaseServer } from './k3s-release-server.ts';
import { NODE } from './node-program.ts';
import { temporaryDirectory } from './temp-home.ts';

/** Faults of the program in `k3s-program.cjs`. */
export interface Faults {
  version?: string;
  start?: 'exit' | 'hang' | 'no kubeconfig';
  term?: 'ignored';
  api?: 'silent' | 'breaks' | 'crash';
  readyz?: number;
  nodes?: 'none' | 'garbled';
  node?: string;
  authority?: string;
}

export interface Script {
  faults: Faults;
  certificates: ClusterCertificates;
  /** By `namespace/name`. */
  services: Record<string, { spec: object; slices: object[] }>;
}

export const NEVER = new AbortController().signal;

export async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

/** This host as a machine, with a release server, and engines that only record their calls. */
export async function k3sMachine(change: (shell: Shell) => Shell = (shell) => shell) {
  const root = temporaryDirectory();
  const [data, runDirectory, logs] = [join(root, 'data'), join(root, 'run'), join(root, 'logs')];
  for (const directory of [data, runDirectory, logs]) mkdirSync(directory);
  const server = await releaseServer();
  const state: Script = { faults: {}, certificates: CERTIFICATES, services: {} };
  const scriptFile = join(root, 'script.json');
  const nodePassword = join(root, 'etc', 'password');
  const program = readFileSync(new URL('k3s-program.cjs', import.meta.url), 'utf8');
  const port = await freePort();
  const events: string[] = [];
  const engine = (name: string): ClusterEngine => ({
    socket: join(runDirectory, `${name}.sock`),
    loadImages: async (archive) => void events.push(`${name} loads ${readFileSync(archive, 'utf8')}`),
    endPods: async (how) => void events.push(`${name} ${how}s pods`),
  });
  const environment = { PATH: process.env.PATH ?? '', LC_ALL: 'C' };
  const logged: string[] = [];
  const onHost = hostShell({
    hold: async () => undefined,
    held: () => 0,
    places: {
      ...{ id: '12345678', record: '', data, run: runDirectory, runElsewhere: false },
      ...{ bridge: '', chain: '', tag: '', cgroup: '' },
    },
    logs,
    run: (argv, options) => run(argv, { ...options, env: environment }),
    environment,
    // Real time, polled more often.
    clock: { ...steadyClock, sleep: (ms, signal) => steadyClock.sleep(Math.min(ms, 40), signal) },
    network: async () => ({ bridge: '', pool: '', shared: false }),
    log: (level, message, values) => logged.push(`${level} ${message} ${JSON.stringify(values ?? {})}`),
  });
  // Searching all processes and mounts of a busy host is slow, and the stand-in program creates none.
  const shell = change({ ...onHost, clear: async () => undefined });
  const power = { on: true };
  const options: K3sOptions = {
    engines: { moby: engine('moby'), containerd: engine('containerd') },
    sources: { channels: server.channelsUrl, releases: server.releasesUrl },
    cache: join(root, 'cache'),
    memo: join(root, 'keeps', 'k3s'),
    kubeconfig: join(root, 'kubeconfig.json'),
    name: 'rdctl',
    isOn: async () => power.on,
    ownsNetwork: false,
    architecture: 'amd64',
    nodePassword,
    readyMs: 60_000,
  };

  function say(faults: Faults = {}, more: Partial<Omit<Script, 'faults'>> = {}): void {
    Object.assign(state, more, { faults });
    writeFileSync(scriptFile, JSON.stringify(state));
  }

  function publish(...versions: string[]): void {
    for (const version of versions) {
      const constants = { VERSION: version, SCRIPT_FILE: scriptFile, NODE_PASSWORD: nodePassword };
      const lines = Object.entries(constants).map(([name, value]) => `const ${name} = ${JSON.stringify(value)};\n`);
      server.publish(version, {
        k3s: `#!${NODE}\n${lines.join('')}${program}`,
        'k3s-airgap-images-amd64.tar.gz': `images of ${version}`,
      });
    }
  }

  function spec(more: Partial<ClusterSpec> = {}): ClusterSpec {
    const plain = { traefik: true, flannel: true, spinkube: false, localhostOnly: false, engine: 'moby' } as const;
    return { version: '1.33.6', port, ...plain, ...more };
  }

  say();
  publish('v1.32.9+k3s1', 'v1.33.6+k3s1', 'v1.33.6+k3s2');
  server.channels.set('stable', 'v1.33.6+k3s1').set('v1.32', 'v1.32.9+k3s1').set('v1.33', 'v1.33.6+k3s2');
  const cluster = k3sCluster(shell, options);
  onTestFinished(async () => {
    say();
    await shell.stop('k3s', 500, NEVER);
    await server.close();
  });
  return {
    ...{
      cluster,
      shell,
      server,
      options,
      events,
      logged,
      port,
      root,
      data,
      run: runDirectory,
      power,
      say,
      publish,
      spec,
    },
    /**
     * As the next service creates it, with a time limit that ends soon after the program is up: until then no time passes, however
     * busy this computer is.
     */
    impatient: (isUp: (log: string) => boolean) => {
      let time = 0;
      const clock: Clock = {
        now: () => time,
        async sleep(ms, signal) {
          await steadyClock.sleep(Math.min(ms, 40), signal);
          if (isUp((await shell.tail('k3s')).join('\n'))) time += ms;
        },
      };
      return k3sCluster({ ...shell, clock }, { ...options, readyMs: 1_500 });
    },
    /** As the next service creates it. */
    again: (more: Partial<K3sOptions> = {}) => k3sCluster(shell, { ...options, ...more }),
    start: (more: Partial<ClusterSpec> = {}) => cluster.perform({ do: 'start', spec: spec(more) }, NEVER),
    stop: () => cluster.perform({ do: 'stop' }, NEVER),
    reset: () => cluster.perform({ do: 'reset' }, NEVER),
    look: () => cluster.observe(NEVER),
    pid: async () => {
      const found = await findDaemon(join(runDirectory, 'k3s.pid.json'));
      return found.state === 'running' ? found.pid : undefined;
    },
    database: () => {
      const file = join(data, 'k3s', 'state', 'server', 'db', 'state.json');
      return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
    },
  };
}
