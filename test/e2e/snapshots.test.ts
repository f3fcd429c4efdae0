import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { run } from '../../src/os/run.ts';
import { busyboxImage, busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, runContainer, startContainer } from '../helpers/engine-client.ts';
import { hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { type ToolHome, toolHome } from '../helpers/tool-home.ts';

const IMAGE = 'test/base:1';
const READ = { image: IMAGE, command: ['/bin/busybox', 'cat', '/data/file'], binds: ['kept:/data'] };
const writeText = (text: string) => ({ ...READ, command: ['/bin/busybox', 'sh', '-c', `echo ${text} > /data/file`] });
const SLEEP = { image: IMAGE, command: ['/bin/busybox', 'sleep', '10000'] };
const VERIFIED = 'notice: This happens once the snapshot is verified; the backend then starts with its data.\n';

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('snapshots of real engines', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdctl-snapshot-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function moby(tool: ToolHome): Promise<string> {
    expect(await tool.rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    return (await tool.status()).engine.endpoint ?? '';
  }

  async function ready(tool: ToolHome): Promise<void> {
    expect(await tool.rdctl('start', '--wait')).toMatchObject({ exit: 0 });
  }

  function imagesOf(endpoint: string): Promise<string[]> {
    return callEngine(endpoint, 'GET', '/images/json').then(({ body }) => {
      const images: { RepoTags: string[] }[] = JSON.parse(body.toString());
      return images.flatMap(({ RepoTags }) => RepoTags).sort();
    });
  }

  async function containersOf(endpoint: string): Promise<string[]> {
    const { body } = await callEngine(endpoint, 'GET', '/containers/json?all=1');
    return (JSON.parse(body.toString()) as { Id: string }[]).map(({ Id }) => Id);
  }

  test('restore images, containers and volumes of moby, also after kill -9 halfway', async () => {
    const tool = toolHome();
    const { home, rdctl } = tool;
    const endpoint = await moby(tool);
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
    await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
    expect(await runContainer(endpoint, writeText('then'))).toMatchObject({ status: 0 });
    const early = await startContainer(endpoint, { ...SLEEP, name: 'early', restart: 'always' });

    expect(await rdctl('snapshot', 'create', 'one', '--description', 'with a volume')).toEqual({
      exit: 0,
      out: '',
      err: 'notice: stops 1 container: early; it starts again when moby does\nnotice: The backend starts again once the copy is complete.\n',
    });
    await ready(tool);
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'then\n' });

    // Later changes.
    expect(await runContainer(endpoint, writeText('now'))).toMatchObject({ status: 0 });
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/later&tag=1', busyboxRoot());
    await startContainer(endpoint, { ...SLEEP, name: 'late' });

    expect(await rdctl('snapshot', 'restore', 'one')).toEqual({
      exit: 0,
      out: '',
      err: `notice: stops 2 containers: late and early\n${VERIFIED}`,
    });
    expect(await tool.status()).toMatchObject({ converged: true, engine: { name: 'moby' } });
    expect(await imagesOf(endpoint)).toEqual([IMAGE]);
    expect(await containersOf(endpoint)).toEqual([early]);
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'then\n' });
    const state = join(home, 'state');
    expect(readdirSync(join(state, 'drivers', 'host')).filter((name) => name.startsWith('data'))).toEqual(['data']);

    // Killed during a restore: nothing is lost, however far it got.
    expect(await runContainer(endpoint, writeText('now'))).toMatchObject({ status: 0 });
    const killed = rdctl('snapshot', 'restore', 'one');
    const pid = tool.servicePid();
    await appears(join(state, 'restore.json'));
    process.kill(pid, 'SIGKILL');
    expect(await killed).toMatchObject({ exit: 1 });
    await ready(tool);
    expect(['now\n', 'then\n']).toContain((await runContainer(endpoint, READ)).output);
    expect(await containersOf(endpoint)).toEqual([early]);
    expect(existsSync(join(home, 'backend.lock'))).toBe(false);
    await expect.poll(() => existsSync(join(state, 'restore.json')), { timeout: 20_000 }).toBe(false);

    // Without a running service.
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await rdctl('snapshot', 'restore', 'one')).toEqual({ exit: 0, out: '', err: '' });
    expect(await hostTraces(join(state, 'drivers', 'host'))).toEqual([]);
    expect((await rdctl('snapshot', 'list')).out).toMatch(
      /^NAME {4}CREATED +DESCRIPTION\none {5}.* {4}with a volume\n$/,
    );
    await ready(tool);
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'then\n' });

    // Everything is removed, and it starts empty.
    const wiped = await rdctl('api', '-X', 'PUT', '-b', '{"mode":"wipe"}', 'k8s_reset');
    expect(wiped).toEqual({ exit: 0, out: 'Rancher Desktop wipe reset successful\n', err: '' });
    expect(await imagesOf(endpoint)).toEqual([]);
    expect(await rdctl('snapshot', 'restore', 'one')).toEqual({ exit: 0, out: '', err: '' });
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'then\n' });
  });

  test('refuse a damaged one before anything stops, and leave everything unchanged when canceled', async () => {
    const tool = toolHome();
    const { home, rdctl, rdctlWith } = tool;
    const endpoint = await moby(tool);
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
    await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
    expect(await runContainer(endpoint, writeText('then'))).toMatchObject({ status: 0 });
    expect(await rdctl('snapshot', 'create', 'one')).toMatchObject({ exit: 0 });
    await ready(tool);
    expect(await runContainer(endpoint, writeText('now'))).toMatchObject({ status: 0 });

    const interrupted = await rdctlWith(
      {
        onSpawn: (child) => void appears(join(home, 'backend.lock')).then(() => child.kill('SIGINT')),
      },
      'snapshot',
      'restore',
      'one',
    );
    expect(interrupted).toMatchObject({ exit: 130, out: '' });
    expect(interrupted.err).toContain('Cancelling snapshot restoration...\n');
    expect(interrupted.err).toContain('the operation was canceled, and everything is as it was before');
    await ready(tool);
    expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'now\n' });

    const sleeping = await startContainer(endpoint, { ...SLEEP, name: 'sleeping' });
    const [id = ''] = readdirSync(join(home, 'snapshots'));
    const saved = join(home, 'snapshots', id, '0-data', 'moby', 'volumes', 'kept', '_data', 'file');
    writeFileSync(saved, 'fake\n');
    const { exit, err } = await rdctl('snapshot', 'restore', 'one');
    expect(exit).toBe(1);
    expect(err).toBe(
      `notice: stops 1 container: sleeping\n${VERIFIED}Error: failed to restore snapshot "one": the snapshot is damaged: 0-data/moby/volumes/kept/_data/file has changed\n`,
    );
    // It was never stopped.
    const { State } = await engineJson(endpoint, 'GET', `/containers/${sleeping}/json`);
    expect(State).toMatchObject({ Running: true });
  });

  test('restore images of containerd', async () => {
    const tool = toolHome();
    const { rdctl } = tool;
    expect(await rdctl('apply', '-f', 'examples/containerd.yaml')).toMatchObject({ exit: 0 });
    const socket = (await tool.status()).engine.endpoint?.replace('unix://', '') ?? '';
    const ctr = async (...argv: string[]) => (await run(['ctr', '--address', socket, ...argv])).stdout;
    const load = async (name: string) => {
      const archive = join(folder, 'image.tar');
      writeFileSync(archive, busyboxImage(name));
      await ctr('images', 'import', archive);
    };
    await load('docker.io/test/then:1');
    expect(await rdctl('snapshot', 'create', 'one')).toMatchObject({ exit: 0 });
    await ready(tool);
    await load('docker.io/test/later:1');
    expect(await rdctl('snapshot', 'restore', 'one')).toMatchObject({ exit: 0, err: '' });
    expect(await ctr('images', 'ls', '--quiet')).toBe('docker.io/test/then:1\n');
    expect(await ctr('run', '--rm', 'docker.io/test/then:1', 'once', '/bin/busybox', 'echo', 'hi')).toBe('hi\n');
  });
});

/** Resolves as soon as a file of that name exists. */
async function appears(path: string): Promise<void> {
  const ended = { test: false };
  onTestFinished(() => {
    ended.test = true;
  });
  while (!existsSync(path) && !ended.test) await new Promise((resolve) => setImmediate(resolve));
}
