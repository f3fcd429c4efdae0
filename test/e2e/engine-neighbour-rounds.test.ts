import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, publishedPort, runContainer, startContainer } from '../helpers/engine-client.ts';
import { type OtherHost, otherHost, SYSTEM_SOCKET } from '../helpers/other-host.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';

const IMAGE = 'test/base:1';
const HTTPD = ['/bin/busybox', 'sh', '-c', 'echo here > /page && exec /bin/busybox httpd -f -p 80 -h /'];
const PORTS = { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] };

const reason = await whyNoRealEngine();

/** A container with a published port, and everything its owner would see change. */
interface Served {
  endpoint: string;
  id: string;
  port: number;
  address: string;
}

async function serve(endpoint: string, network = 'default'): Promise<Served> {
  const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD, ports: PORTS, network, restart: 'always' });
  const { NetworkSettings } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
  const networks = Object.values((NetworkSettings as { Networks: Record<string, { IPAddress: string }> }).Networks);
  return { endpoint, id, port: await publishedPort(endpoint, id, '80/tcp'), address: networks[0]?.IPAddress ?? '' };
}

async function makeNetwork(endpoint: string, name: string, subnet: string): Promise<void> {
  await engineJson(endpoint, 'POST', '/networks/create', { Name: name, IPAM: { Config: [{ Subnet: subnet }] } });
}

async function prepare(endpoint: string, network: string): Promise<Served[]> {
  await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
  await engineJson(endpoint, 'POST', '/networks/create', { Name: network });
  return [await serve(endpoint), await serve(endpoint, network)];
}

interface Link {
  ifname: string;
  ifindex: number;
  master?: string;
  address?: string;
  flags: string[];
  addr_info: { local: string; prefixlen: number }[];
}

/** The network as its users see it, one line per fact, without what is `ours`. */
function facts(
  state: Record<string, string>,
  ours?: { bridge: string; chain: string; tag: string; known: Set<string> },
) {
  const links = (JSON.parse(state.links ?? '') as Link[]).map(
    ({ ifname, ifindex, master = '', address = '', flags, addr_info: info }) => {
      const addresses = info.map(({ local, prefixlen }) => `${local}/${prefixlen}`).toSorted();
      const text = [ifname, ifindex, master, address, flags.includes('UP') ? 'up' : 'down', ...addresses].join(' ');
      return { ifname, master, text };
    },
  );
  const isOurBridge = (name: string) =>
    name === ours?.bridge || (ours !== undefined && /^br-[0-9a-f]{12}$/.test(name) && !ours.known.has(name));
  const isOurs = ({ ifname, master }: { ifname: string; master: string }) => isOurBridge(ifname) || isOurBridge(master);
  const gone = new Set(links.filter(isOurs).map(({ ifname }) => ifname));
  const lines = (part: string) => (state[part] ?? '').split('\n').filter((line) => line.trim() !== '');
  const rules = (part: string) => {
    let table = '';
    return lines(part).flatMap((line) => {
      if (line.startsWith('*')) table = line;
      if (!/^[:-]/.test(line) || / ACCEPT \[/.test(line)) return [];
      if (ours && (line.includes(ours.tag) || new RegExp(`[ :]${ours.chain}( |$)`).test(line))) return [];
      return [`${part} ${table} ${line.replace(/\[\d+:\d+\]/, '')}`];
    });
  };
  return [
    ...links.filter(({ ifname }) => !gone.has(ifname)).map(({ text }) => text),
    ...rules('rules4'),
    ...rules('rules6'),
    ...lines('routes')
      .filter((line) => !gone.has(/ dev (\S+)/.exec(line)?.[1] ?? ''))
      .toSorted(),
    ...lines('policy'),
    ...lines('sysctls'),
  ];
}

describe.skipIf(reason !== undefined)("beside the system's docker and another installation", () => {
  let host: OtherHost;
  const system = () => `unix://${host.path(SYSTEM_SOCKET)}`;
  const socketOf = (home: string) => `unix://${join(host.folder, home, 'state/drivers/host/run/moby/docker.sock')}`;

  beforeEach(async () => {
    host = await otherHost();
  });
  afterEach(() => host?.close());

  async function must(home: string, ...argv: string[]): Promise<void> {
    const { exitCode, stdout, stderr } = await host.rdctl(home, ...argv);
    if (exitCode !== 0) throw new Error(`rdctl ${argv.join(' ')}: ${exitCode} ${stdout} ${stderr}`);
  }
  const apply = (home: string, engine: 'moby' | 'containerd') =>
    must(home, 'apply', '-f', resolve(`examples/${engine}.yaml`));

  /** Once the program in each, which has just been started, listens. */
  async function answering(served: readonly Served[]): Promise<Served[]> {
    for (const { port } of served)
      await expect.poll(() => host.get(`127.0.0.1:${port}/page`).catch(() => '')).toBe('here\n');
    return [...served];
  }

  /** The containers, and that they answer on their address and port. */
  async function seen(served: readonly Served[]): Promise<string[]> {
    return Promise.all(
      served.map(async ({ endpoint, id, port, address }) => {
        const { State, RestartCount, NetworkSettings } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
        const pages = await Promise.all([`127.0.0.1:${port}`, `${address}:80`].map((at) => host.get(`${at}/page`)));
        return JSON.stringify({ State, RestartCount, NetworkSettings, pages });
      }),
    );
  }

  test('any sequence of starts, switches, kills and resets leaves both unchanged', async () => {
    await host.startDocker();
    const neighbours = await answering(await prepare(system(), 'theirs'));
    await apply('b', 'moby');
    neighbours.push(...(await answering(await prepare(socketOf('b'), 'second'))));
    const { bridge, chain, tag, run } = hostPlaces(join(host.folder, 'a/state/drivers/host'));
    const { links = '' } = await host.networkState();
    const known = new Set([...links.matchAll(/"ifname":"(br-[0-9a-f]{12})"/g)].map((found) => found[1] ?? ''));
    expect(known.size).toBe(2);
    const before = { network: facts(await host.networkState()), seen: await seen(neighbours) };

    const pidOf = (program: string): string =>
      String(JSON.parse(readFileSync(join(run, `${program}.pid.json`), 'utf8')).pid);
    const servicePid = (): string =>
      String(JSON.parse(readFileSync(join(host.folder, 'a/app-engine.json'), 'utf8')).pid);
    const killed = async (pid: string) => void (await host.run(['kill', '-9', pid]));
    let mine: Served[] = [];
    let engine: 'moby' | 'containerd' | undefined;

    const steps = {
      async moby() {
        await apply('a', 'moby');
        engine = 'moby';
        if (mine.length === 0) {
          mine = await answering(await prepare(socketOf('a'), 'ours'));
          await makeNetwork(socketOf('a'), 'elsewhere', '192.168.77.0/24');
        }
        for (const { port } of mine) expect(await host.get(`127.0.0.1:${port}/page`)).toBe('here\n');
      },
      async containerd() {
        await apply('a', 'containerd');
        engine = 'containerd';
      },
      async shutdown() {
        await must('a', 'shutdown');
        engine = undefined;
      },
      'kill dockerd': () => killed(pidOf('dockerd')),
      'kill containerd': () => killed(pidOf(engine === 'moby' ? 'moby-containerd' : 'containerd')),
      'kill service': () => killed(servicePid()),
      /** While moby forgets its default network. */
      async 'kill service in start'() {
        const starting = host.rdctl('a', 'apply', '-f', resolve('examples/moby.yaml'));
        engine = 'moby';
        await expect.poll(() => existsSync(join(run, 'moby-isolated.pid.json'))).toBe(true);
        await killed(servicePid());
        expect((await starting).exitCode).not.toBe(0);
      },
      async reset() {
        await must('a', 'reset', '--vm', '--yes');
        mine = [];
      },
      async 'factory reset'() {
        await must('a', 'factory-reset');
        mine = [];
        engine = undefined;
      },
    };
    type Step = keyof typeof steps;

    const done: Step[] = [];
    async function step(name: Step): Promise<void> {
      done.push(name);
      await steps[name]();
      const state = await host.networkState();
      const now = { network: facts(state, engine && { bridge, chain, tag, known }), seen: await seen(neighbours) };
      expect(now, `after ${done.join(', ')}`).toEqual(before);
    }

    const always: Step[] = [
      'moby',
      'shutdown',
      'kill service in start',
      'moby',
      'containerd',
      'moby',
      'kill dockerd',
      'moby',
      'kill service',
      'moby',
      'factory reset',
      'moby',
    ];
    for (const name of always) await step(name);

    const random = numbers(testSeed());
    for (let round = 0; round < rounds(1, 200); round += 1) {
      const can: Step[] = ['moby', 'containerd', 'factory reset'];
      if (engine === 'moby' && existsSync(join(run, 'dockerd.pid.json'))) can.push('kill dockerd');
      if (engine !== undefined) can.push('shutdown', 'kill containerd', 'kill service', 'reset');
      await step(can[random(can.length)] ?? 'moby');
      // The next start or stop must find what was killed; a second kill in a row would have nothing to kill.
      if (done.at(-1)?.startsWith('kill')) await step(random(2) === 0 ? 'moby' : 'factory reset');
    }
    await step('factory reset');
    const left = ['sh', '-c', 'cat /proc/1/mountinfo; cat /proc/[0-9]*/cmdline | tr "\\000" " "'];
    expect((await host.run(left)).stdout).not.toContain(join(host.folder, 'a/'));
    // Control groups are the only thing that stays when this host ends.
    await must('b', 'shutdown');
  });

  test('a system docker that comes later, or restarts, changes nothing here, and keeps what it took from our range', async () => {
    await apply('a', 'moby');
    const ours = await answering(await prepare(socketOf('a'), 'ours'));
    const before = await seen(ours);
    /** Whether a new container can reach another one by its address. */
    const reaches = async (from: string, { address }: Served) => {
      const get = ['/bin/busybox', 'timeout', '2', '/bin/busybox', 'wget', '-q', '-O', '-', `http://${address}/page`];
      return (await runContainer(from, { image: IMAGE, command: get })).status === 0;
    };
    const [first, second] = ours;
    if (!first || !second) throw new Error('there are no containers');

    await host.startDocker();
    const theirs = await answering(await prepare(system(), 'theirs'));
    expect(await seen(ours)).toEqual(before);
    expect([await reaches(system(), first), await reaches(system(), second)]).toEqual([false, false]);

    await host.stopDocker();
    await host.startDocker();
    expect(await seen(ours)).toEqual(before);
    await answering(theirs);
    expect([await reaches(system(), first), await reaches(system(), second)]).toEqual([false, false]);

    await must('a', 'shutdown');
    const { pool } = JSON.parse(readFileSync(join(host.folder, 'a/state/drivers/host/machine.json'), 'utf8'));
    await makeNetwork(system(), 'taken', String(pool).replace('.0.0/16', '.5.0/24'));
    const taken = await serve(system(), 'taken');
    const kept = await seen(await answering([taken]));
    await apply('a', 'moby');
    expect(await seen([taken])).toEqual(kept);
    expect(await reaches(socketOf('a'), taken)).toBe(false);
    await must('a', 'shutdown');
    expect(await seen([taken])).toEqual(kept);
  });
});

/** Whole numbers below a limit, the same for the same seed. */
function numbers(seed: number): (limit: number) => number {
  let state = seed >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
