import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { artifactNames, HOST_ARCHITECTURE } from '../src/drivers/clusters/k3s/artifacts.ts';
import type { ClusterDriver, ClusterSpec } from '../src/drivers/driver.ts';
import { containerdEngine } from '../src/drivers/engines/containerd.ts';
import { mobyEngine } from '../src/drivers/engines/moby.ts';
import { mobyNetworks } from '../src/drivers/engines/moby-config.ts';
import { k3sOn, podNetwork } from '../src/drivers/index.ts';
import { hostFactory } from '../src/drivers/machines/host/index.ts';
import { run } from '../src/os/run.ts';
import { engineSpec, MACHINE } from './contract/driver-suite.ts';
import { releaseServer } from './helpers/k3s-release-server.ts';

/**
 * Runs the true k3s on this host, as root, on private engines: `RDCTL_K3S_ARTIFACTS=DIRECTORY npm run test:k3s`. The directory holds the
 * three files of a release. It is not among the tests, because those files are not available where the tests run. k3s creates links,
 * packet filter rules and `/etc/rancher/node`, so use a disposable machine.
 */
const directory = process.env.RDCTL_K3S_ARTIFACTS;
if (directory === undefined || directory === '') {
  process.stdout.write('Skipped: RDCTL_K3S_ARTIFACTS names no directory with the files of a release of k3s.\n');
} else await main(directory);

async function main(from: string): Promise<void> {
  const names = artifactNames(HOST_ARCHITECTURE);
  const missing = Object.values(names).filter((name) => !readdirSync(from).includes(name));
  if (missing.length > 0) throw new Error(`${from} lacks ${missing.join(', ')}`);
  const printed = (await run([join(from, names.program), '--version'], { timeoutMs: 120_000 })).stdout;
  const release = /v\d+\.\d+\.\d+\+k3s\d+/.exec(printed)?.[0];
  if (release === undefined) throw new Error(`${names.program} says that it is ${printed}`);
  const server = await releaseServer();
  server.channels.set('stable', release);
  const files = Object.values(names).map((name) => [name, readFileSync(join(from, name))] as const);
  server.publish(release, Object.fromEntries(files), HOST_ARCHITECTURE);
  const root = mkdtempSync(join(tmpdir(), 'rd-k3s-'));
  try {
    for (const engine of ['moby', 'containerd'] as const) await exercise(engine, release, root, server);
    say('everything passed');
  } finally {
    await server.close();
    rmSync(root, { recursive: true, force: true });
  }
}

async function exercise(
  engine: 'moby' | 'containerd',
  release: string,
  root: string,
  server: Awaited<ReturnType<typeof releaseServer>>,
): Promise<void> {
  const signal = AbortSignal.timeout(30 * 60_000);
  const [home, logs] = [join(root, engine), join(root, `${engine}-logs`)];
  for (const path of [home, logs]) mkdirSync(path, { mode: 0o700 });
  const sources = { RDCTL_K3S_CHANNELS_URL: server.channelsUrl, RDCTL_K3S_RELEASES_URL: server.releasesUrl };
  const context = { directory: home, logs, now: Date.now, env: { ...process.env, ...sources }, log: () => undefined };
  let cluster: ClusterDriver | undefined;
  const driver = await hostFactory((shell, cgroup) => {
    const parts = {
      context,
      cache: join(root, 'cache'),
      memo: join(home, 'k3s-release'),
      name: 'rdctl',
    };
    cluster = k3sOn(shell, parts);
    return { moby: mobyEngine(shell, cgroup), containerd: containerdEngine(shell, podNetwork(shell.places)) };
  }, mobyNetworks).open(context);
  if (!cluster) throw new Error('there is no cluster');
  const given = { port: 6443, traefik: true, flannel: true, spinkube: false, localhostOnly: false, engine };
  const spec: ClusterSpec = { ...given, version: release };
  await driver.machine.perform({ do: 'start', spec: MACHINE }, signal);
  await driver.engines[engine].perform({ do: 'start', spec: engineSpec(engine) }, signal);
  try {
    for (const round of ['first', 'second']) {
      const begun = Date.now();
      await cluster.perform({ do: 'start', spec }, signal);
      say(`${engine}: ${round} start: ready after ${Math.round((Date.now() - begun) / 1000)} s`);
      const status = await cluster.observe(signal);
      if (status.state !== 'running' || !status.ready) throw new Error(`it is ${JSON.stringify(status)}`);
      const stream = await cluster.connect?.({ namespace: 'default', service: 'kubernetes', port: 443 }, signal);
      stream?.destroy();
      say(`${engine}: the service default/kubernetes takes a connection`);
      await cluster.perform({ do: 'stop' }, signal);
    }
    await cluster.perform({ do: 'reset' }, signal);
    const status = await cluster.observe(signal);
    if (status.state !== 'absent') throw new Error(`after a reset it is ${JSON.stringify(status)}`);
    say(`${engine}: stopped and reset`);
  } finally {
    await cluster.perform({ do: 'stop' }, signal);
    await driver.engines[engine].perform({ do: 'stop' }, signal);
    await driver.machine.perform({ do: 'stop' }, signal);
    await driver.release?.();
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
