import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { run } from '../../src/os/run.ts';
import { callEngine, engineJson } from '../helpers/engine-client.ts';
import { hostTraces, pidOf } from '../helpers/host-instance.ts';
import { type LoopbackRegistry, loopbackRegistry } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { putImage } from '../helpers/registry-image.ts';
import { tarOf } from '../helpers/tar.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

/** From a profile to denied and allowed pulls, with the built tool, the real engines and a real registry. */
describe.skipIf(reason !== undefined)('allowed images', () => {
  let registry: LoopbackRegistry;

  beforeAll(async () => {
    registry = await loopbackRegistry();
    await putImage(registry.host, { name: 'good:1', content: 'busybox', index: true });
    await putImage(registry.host, { name: 'good:2', content: 'file' });
    await putImage(registry.host, { name: 'team/app:1', content: 'file' });
  });
  afterAll(() => registry?.close());

  function desktop(engine: 'moby' | 'containerd') {
    const tool = toolHome();
    const profile = join(tool.home, 'profile.yaml');
    const directory = join(tool.home, 'state', 'drivers', 'host');
    return {
      ...tool,
      directory,
      /** Without patterns the list is switched off. */
      async apply(...patterns: string[]) {
        const allowedImages = { enabled: patterns.length > 0, patterns };
        const settings = {
          version: 19,
          containerEngine: { name: engine, allowedImages },
          kubernetes: { enabled: false },
        };
        const head = { apiVersion: 'rdctl/v1', kind: 'Profile', metadata: { name: 'images' } };
        const document = { ...head, settings, state: 'started' };
        writeFileSync(profile, JSON.stringify(document));
        return tool.rdctl('apply', '-f', profile);
      },
      endpoint: async () => (await tool.status()).engine.endpoint ?? '',
      plugin: () => join(hostPlaces(directory).run, 'moby', 'plugin.sock'),
    };
  }

  /** As the docker command line asks; the response to a pull that started is a stream. */
  async function pull(endpoint: string, image: string, tag: string) {
    const query = new URLSearchParams({ fromImage: `${registry.host}/${image}`, tag });
    const { status, body } = await callEngine(endpoint, 'POST', `/images/create?${query}`);
    return { status, text: body.toString() };
  }

  async function build(endpoint: string, from: string, version: 1 | 2): Promise<string> {
    const context = tarOf([{ path: 'Dockerfile', content: `FROM ${from}\nCOPY Dockerfile /\n`, mode: 0o644 }]);
    const { body } = await callEngine(endpoint, 'POST', `/build?version=${version}`, context);
    // BuildKit puts its messages into base64 records.
    const records = [...body.toString().matchAll(/"aux":"([^"]+)"/g)].map((match) => match[1] ?? '');
    return [body.toString(), ...records.map((record) => Buffer.from(record, 'base64').toString())].join('\n');
  }

  const allowed = { status: 200, text: expect.stringContaining('Status: ') };

  test('moby: pulls, builds, archives, changed patterns, a killed service, and switching it off', async () => {
    const { apply, endpoint: at, directory, plugin, home, rdctl, servicePid, status } = desktop('moby');
    const denied = (name: string) => ({
      status: 403,
      text: expect.stringContaining(`${registry.host}/${name} is not among the allowed images`),
    });
    expect(await apply(`${registry.host}/good:1`)).toMatchObject({ exit: 0 });
    const endpoint = await at();
    expect(await pluginFiles(directory)).toEqual([]);
    expect(await pull(endpoint, 'good', '1')).toEqual(allowed);
    expect(await pull(endpoint, 'good', '2')).toEqual(denied('good:2'));
    expect(await pull(endpoint, 'team/app', '1')).toEqual(denied('team/app:1'));
    // All tags, and a digest that no pattern has.
    expect(await pull(endpoint, 'good', '')).toEqual(denied('good'));
    expect(await pull(endpoint, 'good', `sha256:${'0'.repeat(64)}`)).toMatchObject({ status: 403 });
    // What dockerd parses as the same request.
    const disguised = `/v1.41/images%2Fcreate?fromImage=${registry.host}%2Fteam%2Fapp&tag=1`;
    expect((await callEngine(endpoint, 'POST', disguised)).status).toBe(403);
    const loading = await callEngine(endpoint, 'POST', '/images/load', tarOf([]));
    expect(loading).toMatchObject({ status: 403 });
    expect(loading.body.toString()).toContain('loading an archive of images can bring in any image');
    // Existing images can be built on and run.
    expect(await build(endpoint, `${registry.host}/good:1`, 1)).toContain('Successfully built');
    for (const version of [1, 2] as const) {
      expect(await build(endpoint, 'registry.example.com/base:1', version)).toContain(
        'nothing of registry.example.com is among the allowed images',
      );
    }

    const pid = await pidOf(directory, 'dockerd');
    const before = await status();
    expect(await apply(`${registry.host}/team/`, 'registry.example.com')).toMatchObject({ exit: 0 });
    expect(await pull(endpoint, 'team/app', '1')).toEqual(allowed);
    expect(await pull(endpoint, 'good', '1')).toEqual(denied('good:1'));
    // Images that came in earlier stay and can be run.
    expect(await engineJson(endpoint, 'GET', `/images/${registry.host}/good:1/json`)).toHaveProperty('Id');
    const again = { Image: `${registry.host}/good:1`, Cmd: ['x'] };
    expect((await callEngine(endpoint, 'POST', '/containers/create', again)).status).toBe(201);
    expect(await build(endpoint, 'registry.example.com/base:1', 1)).not.toContain('allowed images');
    expect(await pidOf(directory, 'dockerd')).toBe(pid);
    expect((await status()).counters.steps).toBe(before.counters.steps + 1);

    // Without a service no request is answered; pending ones are answered by the next service.
    process.kill(servicePid(), 'SIGKILL');
    await gone(plugin());
    const waiting = Promise.all([pull(endpoint, 'good', '1'), callEngine(endpoint, 'GET', '/_ping')]);
    expect(await apply(`${registry.host}/team/`, 'registry.example.com')).toMatchObject({ exit: 0 });
    expect(await waiting).toEqual([denied('good:1'), expect.objectContaining({ status: 200 })]);
    expect(await status()).toMatchObject({ converged: true, counters: { steps: 0 } });
    expect(await pidOf(directory, 'dockerd')).toBe(pid);
    expect(await pull(endpoint, 'team/app', '1')).toEqual(allowed);
    expect(await build(endpoint, 'other.example.com/base:1', 1)).toContain('nothing of other.example.com is among');

    expect(await apply()).toMatchObject({ exit: 0 });
    expect(await pidOf(directory, 'dockerd')).not.toBe(pid);
    expect(existsSync(plugin())).toBe(false);
    expect(await pull(endpoint, 'good', '1')).toEqual(allowed);
    expect(await engineJson(endpoint, 'GET', '/info')).toMatchObject({ HttpProxy: '', HttpsProxy: '' });

    // Killed with the list on, and shut down by a command without it.
    expect(await apply(`${registry.host}/good:1`)).toMatchObject({ exit: 0 });
    process.kill(servicePid(), 'SIGKILL');
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(existsSync(plugin())).toBe(false);
    expect(await hostTraces(directory)).toEqual([]);
    expect(readFileSync(join(home, 'logs', 'service.log'), 'utf8')).toContain('an image was denied');
  });

  test('containerd: pulls, changed patterns, a killed service, and switching it off', async () => {
    const { apply, endpoint: at, directory, rdctl, servicePid, status } = desktop('containerd');
    expect(await apply(`${registry.host}/good:1`)).toMatchObject({ exit: 0 });
    const socket = (await at()).replace('unix://', '');
    const hosts = join(hostPlaces(directory).run, 'containerd', 'hosts.d');
    const pullWith = async (image: string, ...flags: string[]) => {
      const argv = ['ctr', '--address', socket, 'images', 'pull', ...flags, `${registry.host}/${image}`];
      return run(argv, { accept: [0, 1] });
    };
    const pull = (image: string) => pullWith(image, '--hosts-dir', hosts);
    const denied = (image: string) => ({
      exitCode: 1,
      stderr: expect.stringContaining(`403 Forbidden: ${registry.host}/${image} is not among the allowed images`),
    });

    expect(await pull('good:1')).toMatchObject({ exitCode: 0 });
    expect(await pull('good:2')).toMatchObject(denied('good:2'));
    expect(await pull('team/app:1')).toMatchObject(denied('team/app:1'));
    // The client enforces the list.
    expect(await pullWith('good:2', '--plain-http')).toMatchObject({ exitCode: 0 });

    const pid = await pidOf(directory, 'containerd');
    expect(await apply(`${registry.host}/team/*`)).toMatchObject({ exit: 0 });
    expect(await pull('team/app:1')).toMatchObject({ exitCode: 0 });
    expect(await pull('good:1')).toMatchObject(denied('good:1'));

    process.kill(servicePid(), 'SIGKILL');
    expect(await pull('team/app:1')).toMatchObject({ exitCode: 1 });
    expect(await apply(`${registry.host}/team/*`)).toMatchObject({ exit: 0 });
    expect(await status()).toMatchObject({ converged: true, counters: { steps: 0 } });
    expect(await pull('team/app:1')).toMatchObject({ exitCode: 0 });
    expect(await pull('good:1')).toMatchObject(denied('good:1'));
    expect(await pidOf(directory, 'containerd')).toBe(pid);

    expect(await apply()).toMatchObject({ exit: 0 });
    expect(existsSync(hosts)).toBe(false);
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await hostTraces(directory)).toEqual([]);
  });
});

/** What other dockerds on the machine would find and ask: an endpoint that never answers would block them. */
async function pluginFiles(directory: string): Promise<string[]> {
  return (await hostTraces(directory)).filter((trace) => /^rdctl-.*\.(?:sock|spec|json)$/.test(trace));
}

/** A killed process takes a moment to disappear; then nothing answers on its socket. */
async function gone(socket: string): Promise<void> {
  await expect
    .poll(() =>
      callEngine(socket, 'POST', '/Plugin.Activate').then(
        () => 'answers',
        () => 'gone',
      ),
    )
    .toBe('gone');
}
