import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../src/os/run.ts';
import { busyboxImage, busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, publishedPort, runContainer, startContainer } from '../helpers/engine-client.ts';
import { hostTraces } from '../helpers/host-instance.ts';
import { type OutsideHost, outsideHost, untilAnswers } from '../helpers/outside-host.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { tarOf } from '../helpers/tar.ts';
import { toolHome } from '../helpers/tool-home.ts';

const IMAGE = 'test/web:1';
const SERVE = ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/www'];
const READ = { image: IMAGE, command: ['/bin/busybox', 'cat', '/data/kept'], binds: ['kept:/data'] };

const reason = await whyNoRealEngine();

/** From a profile to a running engine, with the built tool, the real dockerd and the real containerd. */
describe.skipIf(reason !== undefined)('the host driver', () => {
  let outside: OutsideHost;
  let folder: string;

  beforeAll(async () => {
    outside = await outsideHost();
    folder = mkdtempSync(join(tmpdir(), 'rdctl-images-'));
  });
  afterAll(async () => {
    await outside?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('turns a profile into a real dockerd, then a real containerd, and back, and leaves no trace', async () => {
    const { home, rdctl, status } = toolHome();
    const apply = async (example: string) =>
      expect(await rdctl('apply', '-f', `examples/${example}.yaml`)).toMatchObject({ exit: 0 });

    await apply('moby');
    const first = await status();
    expect(first).toMatchObject({ converged: true, driver: { name: 'host' }, engine: { name: 'moby' } });
    const endpoint = first.engine.endpoint ?? '';
    expect(endpoint).toMatch(/^unix:\/\//);

    await buildImage(endpoint);
    const id = await startContainer(endpoint, {
      image: IMAGE,
      command: SERVE,
      ports: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] },
    });
    const port = await publishedPort(endpoint, id, '80/tcp');
    expect(await untilAnswers(`http://127.0.0.1:${port}/index.html`)).toBe('from a profile');
    await engineJson(endpoint, 'DELETE', `/containers/${id}?force=1`);
    const fetchOutside = ['/bin/busybox', 'timeout', '10', '/bin/busybox', 'wget', '-q', '-O', '-', outside.url];
    expect(await runContainer(endpoint, { image: IMAGE, command: fetchOutside })).toEqual({
      status: 0,
      output: outside.text,
    });
    await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
    const write = ['/bin/busybox', 'sh', '-c', 'echo here > /data/kept'];
    expect(await runContainer(endpoint, { ...READ, command: write })).toEqual({ status: 0, output: '' });

    // Again: no write, no step.
    await apply('moby');
    expect((await status()).counters).toEqual(first.counters);

    // After a service restart.
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await hostTraces(join(home, 'state', 'drivers', 'host'))).toEqual([]);
    await apply('moby');
    expect((await status()).counters.settingsPuts).toBe(0);
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'here\n' });

    // The other engine.
    await apply('containerd');
    const other = await status();
    expect(other).toMatchObject({ converged: true, engine: { name: 'containerd' } });
    await expect(callEngine(endpoint, 'GET', '/_ping')).rejects.toThrow();
    const archive = join(folder, 'tool.tar');
    writeFileSync(archive, busyboxImage('docker.io/test/tool:1'));
    const socket = other.engine.endpoint?.replace('unix://', '') ?? '';
    await run(['ctr', '--address', socket, 'images', 'import', archive]);
    const ran = await run([
      'ctr',
      '--address',
      socket,
      'run',
      '--rm',
      'docker.io/test/tool:1',
      'once',
      '/bin/busybox',
      'echo',
      'hi',
    ]);
    expect(ran.stdout).toBe('hi\n');

    // And back: the volume still exists.
    await apply('moby');
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'here\n' });

    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await hostTraces(join(home, 'state', 'drivers', 'host'))).toEqual([]);
  });

  test('finds no change in a profile that init wrote, also with every setting, and refuses none of it', async () => {
    const { rdctl, rdctlWith } = toolHome();
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    for (const all of [[], ['--all']]) {
      const { out: stdin } = await rdctl('init', ...all);
      expect(await rdctlWith({ stdin }, 'plan', '--detailed-exitcode', '-f', '-')).toMatchObject({ exit: 0 });
      expect((await rdctlWith({ stdin }, 'apply', '-f', '-')).out).toContain('Nothing to change.');
    }
  });

  test('a restart stops what its plan names, and starts again what the plan says', async () => {
    const { rdctl, status } = toolHome();
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const endpoint = (await status()).engine.endpoint ?? '';
    await buildImage(endpoint);
    const policies = { job: 'on-failure', cache: 'no', db: 'unless-stopped', web: 'always' };
    for (const [name, restart] of Object.entries(policies)) {
      await startContainer(endpoint, { image: IMAGE, command: SERVE, restart, name });
    }
    const file = join(folder, 'restart.json');
    const allowedImages = { enabled: true, patterns: ['test/web'] };
    writeFileSync(file, JSON.stringify({ version: 19, containerEngine: { allowedImages } }));
    const { blastRadius } = JSON.parse((await rdctl('plan', '-f', file, '-o', 'json')).out);
    expect(blastRadius).toEqual([
      {
        what: 'stops 4 containers: web, db, cache and job; web and db start again by themselves, cache stays down, job may start again',
        lost: false,
      },
    ]);
    const running = async () => {
      const { body } = await callEngine(endpoint, 'GET', '/containers/json');
      const containers: { Names: string[] }[] = JSON.parse(body.toString());
      return containers.flatMap(({ Names }) => Names);
    };
    expect(await rdctl('apply', '-f', file)).toMatchObject({ exit: 0 });
    expect((await status()).counters.restarts).toBe(1);
    await expect.poll(running).toEqual(expect.arrayContaining(['/web', '/db']));
    expect(await running()).not.toContain('/cache');
  });

  test('a service killed with -9 leaves engine and containers running, and the next one adopts them', async () => {
    const { rdctl, servicePid, status } = toolHome();
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const endpoint = (await status()).engine.endpoint ?? '';
    await buildImage(endpoint);
    const id = await startContainer(endpoint, { image: IMAGE, command: SERVE });

    process.kill(servicePid(), 'SIGKILL');
    const answered = await rdctl('apply', '-f', 'examples/moby.yaml');
    expect(answered).toMatchObject({ exit: 0 });
    const { State } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
    expect(State).toMatchObject({ Running: true });
    expect(await status()).toMatchObject({ converged: true, counters: { steps: 0, settingsPuts: 0 } });
    await engineJson(endpoint, 'DELETE', `/containers/${id}?force=1`);
  });

  test('reports what a killed service left running, and shutdown stops it', async () => {
    const { home, rdctl, servicePid } = toolHome();
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const pid = servicePid();
    process.kill(pid, 'SIGKILL');
    const left = new RegExp(
      `The last service \\(pid ${pid}\\) exited without stopping its backend \\(driver host\\), which may still be running`,
    );
    expect(await rdctl('status')).toMatchObject({ exit: 1, err: expect.stringMatching(left) });
    const stopped = await rdctl('shutdown');
    expect(stopped).toMatchObject({ exit: 0, out: 'Shutting down.\n', err: expect.stringMatching(left) });
    expect(await hostTraces(join(home, 'state', 'drivers', 'host'))).toEqual([]);
    expect(await rdctl('shutdown')).toEqual({ exit: 0, out: '', err: '' });
  });

  async function buildImage(endpoint: string): Promise<void> {
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
    const context = tarOf([
      { path: 'Dockerfile', content: 'FROM test/base:1\nCOPY index.html /www/index.html\n', mode: 0o644 },
      { path: 'index.html', content: 'from a profile', mode: 0o644 },
    ]);
    const built = await callEngine(endpoint, 'POST', `/build?t=${IMAGE}`, context);
    expect(built.body.toString()).toContain('Successfully tagged');
  }
});
