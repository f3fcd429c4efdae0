import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { steadyClock } from '../../src/os/clock.ts';
import { startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { run } from '../../src/os/run.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, publishedPort, runContainer, startContainer } from '../helpers/engine-client.ts';
import { endpointOf, FOREVER, hostInstance } from '../helpers/host-instance.ts';
import { type OutsideHost, outsideHost, untilAnswers } from '../helpers/outside-host.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';

const IMAGE = 'test/base:1';
const HTTPD = ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/'];
const FORWARD = '/proc/sys/net/ipv4/ip_forward';

/** Why the host's own docker cannot be simulated here. */
async function whyNoNeighbour(): Promise<string | undefined> {
  const reason = await whyNoRealEngine();
  if (reason !== undefined) return reason;
  const docker0 = (await run(['ip', '-o', 'link', 'show'])).stdout.includes(' docker0:');
  if (!docker0) return undefined;
  process.stderr.write(
    '\nSKIPPED: this host has a docker of its own, and a second one with its network would disturb it\n',
  );
  return 'this host has a docker of its own';
}

/** Rules of the packet filter, user chains and policies other than ACCEPT, without counters: an empty table does not count. */
async function rules(): Promise<string[]> {
  const { stdout } = await run(['iptables-save']);
  const lines = stdout.split('\n').filter((line) => /^[:-]/.test(line) && !/ ACCEPT \[\d+:\d+\]$/.test(line));
  return lines.map((line) => line.replace(/ \[\d+:\d+\]$/, ''));
}

const reason = await whyNoNeighbour();

describe.skipIf(reason !== undefined)('beside a system docker with default networking', () => {
  let root: string;
  let system: string;
  let address: string;
  let port: number;
  let outside: OutsideHost;
  let forwarding: string;

  beforeAll(async () => {
    forwarding = readFileSync(FORWARD, 'utf8');
    // dockerd blocks forwarding for the rest of the machine only if it had to turn forwarding on.
    writeFileSync(FORWARD, '0');
    root = mkdtempSync(join(tmpdir(), 'rd-sys-'));
    outside = await outsideHost();
    const config = join(root, 'daemon.json');
    system = `unix://${join(root, 'docker.sock')}`;
    mkdirSync(join(root, 'data'));
    writeFileSync(
      config,
      JSON.stringify({
        hosts: [system],
        'data-root': join(root, 'data'),
        'exec-root': join(root, 'exec'),
        pidfile: join(root, 'docker.pid'),
        group: 'root',
      }),
    );
    await startDaemon({
      argv: ['dockerd', '--config-file', config],
      recordFile: join(root, 'record.json'),
      logFile: join(root, 'dockerd.log'),
      env: process.env,
    });
    await vi.waitFor(async () => expect(await ping()).toBe(200), { timeout: 60_000, interval: 100 });
    await engineJson(system, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
    const ports = { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] };
    const id = await startContainer(system, { image: IMAGE, command: HTTPD, ports });
    port = await publishedPort(system, id, '80/tcp');
    const { NetworkSettings } = await engineJson(system, 'GET', `/containers/${id}/json`);
    address = (NetworkSettings as { IPAddress: string }).IPAddress;
  });
  afterAll(async () => {
    await stopDaemon(join(root, 'record.json'), { graceMs: 30_000, clock: steadyClock });
    await outside?.close();
    await removeSystemTraces();
    writeFileSync(FORWARD, forwarding);
    rmSync(root, { recursive: true });
  });

  async function ping(): Promise<number> {
    return (await callEngine(system, 'GET', '/_ping').catch(() => ({ status: 0 }))).status;
  }

  async function systemIsWell(): Promise<void> {
    expect(await untilAnswers(`http://127.0.0.1:${port}/bin/sh`)).not.toBe('');
    expect(await untilAnswers(`http://${address}/bin/sh`)).not.toBe('');
    const command = ['/bin/busybox', 'timeout', '10', '/bin/busybox', 'wget', '-q', '-O', '-', outside.url];
    expect(await runContainer(system, { image: IMAGE, command })).toEqual({ status: 0, output: outside.text });
  }

  /** The link with its number and address; a recreated bridge has another number. */
  async function docker0(): Promise<string> {
    return (await run(['ip', '-o', '-4', 'address', 'show', 'docker0'])).stdout;
  }

  test('leaves its rules, its bridge and its containers unchanged', async () => {
    await systemIsWell();
    const before = { rules: await rules(), docker0: await docker0(), forwarding: readFileSync(FORWARD, 'utf8') };

    const instance = await hostInstance();
    try {
      const { machine, engines } = instance.driver;
      await machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
      await engines.moby.perform({ do: 'start', spec: engineSpec('moby') }, FOREVER);
      const endpoint = await endpointOf(instance.driver, 'moby');
      await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());

      // The other engine blocks forwarding for all networks but its own; ours has access anyway.
      expect(before.rules).toContain(':FORWARD DROP');
      const get = (url: string) => ['/bin/busybox', 'timeout', '3', '/bin/busybox', 'wget', '-q', '-O', '-', url];
      const out = await runContainer(endpoint, { image: IMAGE, command: get(outside.url) });
      expect(out).toEqual({ status: 0, output: outside.text });
      // And what runs in the other engine stays unreachable.
      const across = await runContainer(endpoint, { image: IMAGE, command: get(`http://${address}/bin/sh`) });
      expect(across).not.toMatchObject({ status: 0 });

      await systemIsWell();
      const added = (await rules()).filter((line) => !before.rules.includes(line));
      expect(added.length).toBeGreaterThan(0);
      for (const line of added) expect(line).toMatch(/rdctl:|RDCTL-/);
    } finally {
      expect(await instance.close()).toEqual([]);
    }
    const after = { rules: await rules(), docker0: await docker0(), forwarding: readFileSync(FORWARD, 'utf8') };
    expect(after).toEqual(before);
    await systemIsWell();
  });
});

/** What a docker with default networking leaves when it stops. */
async function removeSystemTraces(): Promise<void> {
  const links = (await run(['ip', '-o', 'link', 'show'])).stdout;
  if (links.includes(' docker0:')) await run(['ip', 'link', 'delete', 'docker0']);
  for (const table of ['nat', 'filter']) {
    const iptables = (args: string[]) => run(['iptables', '--wait', '10', '-t', table, ...args]);
    const lines = (await iptables(['-S'])).stdout.split('\n');
    for (const line of lines.filter((rule) => rule.startsWith('-A ') && /docker0|DOCKER|172\.17\./.test(rule))) {
      await iptables(['-D', ...line.slice(3).split(' ')]);
    }
    for (const line of lines.filter((rule) => rule.startsWith('-N DOCKER'))) await iptables(['-X', line.slice(3)]);
  }
  await run(['iptables', '--wait', '10', '-P', 'FORWARD', 'ACCEPT']);
  if (existsSync('/var/run/docker.pid')) throw new Error('the docker of the system was to have its own directory');
}
