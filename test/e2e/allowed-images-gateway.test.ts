import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Driver } from '../../src/drivers/driver.ts';
import { containerdEngine } from '../../src/drivers/engines/containerd.ts';
import { mobyEngine } from '../../src/drivers/engines/moby.ts';
import { mobyNetworks, mobyPlaces } from '../../src/drivers/engines/moby-config.ts';
import { hostFactory } from '../../src/drivers/machines/host/index.ts';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import type { Arrangement } from '../../src/drivers/shell.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { type DistantRegistry, distantRegistry } from '../helpers/distant-registry.ts';
import { callEngine } from '../helpers/engine-client.ts';
import { endpointOf, FOREVER, hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { putImage } from '../helpers/registry-image.ts';
import { tarOf } from '../helpers/tar.ts';

/** What either builder answers. */
const BUILT = /Successfully built|"id":"moby\.image\.id"/;

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('the gateway of a real dockerd', () => {
  let registry: DistantRegistry;
  let env: Record<string, string | undefined>;
  /** dockerd never uses a proxy for the loopback interface, so these are names that only the proxy can resolve. */
  let [NAME, TLS_NAME] = ['', ''];
  let asked: readonly string[];

  beforeAll(async () => {
    registry = await distantRegistry();
    ({ plain: NAME, secure: TLS_NAME, asked } = registry);
    await putImage(registry.host, { name: 'team/app:1', content: 'busybox', index: true });
    await putImage(registry.host, { name: 'team/other:1', content: 'file' });
    env = { ...process.env, ...registry.env };
  });
  afterAll(() => registry?.close());

  /** dockerd that treats these names as registries without TLS, which only a test may do. */
  async function desktop(environment = env) {
    const root = mkdtempSync(join(tmpdir(), 'rd-'));
    const directory = join(root, 'host');
    const logs = join(root, 'logs');
    for (const path of [directory, logs]) mkdirSync(path, { mode: 0o700 });
    const factory = hostFactory((shell, cgroup) => {
      const withName = ({ files, ...rest }: Arrangement): Arrangement => ({
        ...rest,
        files: files.map(({ path, text }) =>
          path.endsWith('daemon.json')
            ? { path, text: JSON.stringify({ ...JSON.parse(text), 'insecure-registries': [NAME] }) }
            : { path, text },
        ),
      });
      const moby = mobyEngine(
        {
          ...shell,
          start: (programs, { before, ...rest } = {}) =>
            shell.start(programs, { ...rest, ...(before ? { before: withName(before) } : {}) }),
        },
        cgroup,
      );
      return { moby, containerd: containerdEngine(shell) };
    }, mobyNetworks);
    const open = () => factory.open({ directory, logs, log: () => undefined, now: () => Date.now(), env: environment });
    const driver = await open();
    onTestFinished(async () => {
      await driver.engines.moby.perform({ do: 'stop' }, FOREVER);
      await driver.machine.perform({ do: 'stop' }, FOREVER);
      expect(await hostTraces(directory)).toEqual([]);
      rmSync(root, { recursive: true });
    });
    await driver.machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
    return { driver, directory, open };
  }

  const listed = (...patterns: string[]) => ({ ...engineSpec('moby'), allowedImages: { enabled: true, patterns } });
  const start = (driver: Driver, ...patterns: string[]) =>
    driver.engines.moby.perform({ do: 'start', spec: listed(...patterns) }, FOREVER);

  async function build(driver: Driver, from: string, version: 1 | 2 = 1, add = 'Dockerfile'): Promise<string> {
    const endpoint = await endpointOf(driver, 'moby');
    const context = tarOf([{ path: 'Dockerfile', content: `FROM ${from}\nADD ${add} /x\n`, mode: 0o644 }]);
    const { body } = await callEngine(endpoint, 'POST', `/build?version=${version}`, context);
    const records = [...body.toString().matchAll(/"aux":"([^"]+)"/g)].map((match) => match[1] ?? '');
    return [body.toString(), ...records.map((record) => Buffer.from(record, 'base64').toString())].join('\n');
  }

  test('a build gets allowed images through the upstream proxy, and no others of the same registry', async () => {
    const { driver } = await desktop();
    await start(driver, `${NAME}/team/app:1`);
    expect(await build(driver, `${NAME}/team/app:1`)).toContain('Successfully built');
    expect(asked).toContain(`${NAME}:80`);
    expect(await build(driver, `${NAME}/team/other:1`)).toContain(
      `${NAME}/team/other:1 is not among the allowed images`,
    );
    expect(await build(driver, `${NAME}/team/app:2`)).toContain(`${NAME}/team/app:2 is not among the allowed images`);
    expect(await build(driver, 'evil.test/x')).toContain('nothing of evil.test is among the allowed images');
    expect(asked.filter((authority) => authority.includes('evil'))).toEqual([]);
  });

  test('proxy exceptions of the service do not apply to dockerd', async () => {
    const { driver } = await desktop({ ...env, NO_PROXY: '*', no_proxy: '*' });
    await start(driver, NAME);
    expect(await build(driver, 'evil.test/x')).toContain('nothing of evil.test is among the allowed images');
  });

  test.each([1, 2] as const)(
    'builder %i and pulls over TLS are checked by the full name of the image',
    async (version) => {
      const { driver } = await desktop();
      await start(driver, `${TLS_NAME}/team/app:1`);
      expect(await build(driver, `${TLS_NAME}/team/app:1`, version)).toMatch(BUILT);
      expect(asked).toContain(`${TLS_NAME}:443`);
      const added = await build(driver, 'scratch', version, 'https://evil.test/x');
      expect(added).toContain('nothing of evil.test is among the allowed images');
      const { images } = driver.engines.moby;
      for (const denied of [`${TLS_NAME}/team/other:1`, `${TLS_NAME}/team/app:2`])
        expect(await build(driver, denied, version)).toContain(`${denied} is not among the allowed images`);
      expect(await build(driver, 'evil.test/x', version)).toContain('nothing of evil.test is among the allowed images');
      await images?.pull(`${TLS_NAME}/team/app:1`, FOREVER);
      await expect(images?.pull(`${TLS_NAME}/team/other:1`, FOREVER)).rejects.toMatchObject({ code: 'ERR_FORBIDDEN' });
    },
  );

  test('images can be pushed over TLS, also after the service was replaced', async () => {
    const { driver, open } = await desktop();
    await start(driver, `${TLS_NAME}/team/app:1`, `${TLS_NAME}/team/pushed`);
    await driver.engines.moby.images?.pull(`${TLS_NAME}/team/app:1`, FOREVER);
    await driver.release?.();
    const next = await open();
    onTestFinished(async () => next.release?.());
    expect(await next.engines.moby.observe(FOREVER)).toMatchObject({ state: 'running' });
    const endpoint = await endpointOf(next, 'moby');
    const pushed = `${TLS_NAME}/team/pushed`;
    await callEngine(endpoint, 'POST', `/images/${TLS_NAME}/team/app:1/tag?repo=${pushed}&tag=1`);
    const headers = { 'x-registry-auth': Buffer.from('{}').toString('base64') };
    const { body } = await callEngine(endpoint, 'POST', `/images/${pushed}/push?tag=1`, undefined, headers);
    expect(body.toString()).toContain('"Tag":"1"');
    const tags = await fetch(`http://${registry.host}/v2/team/pushed/tags/list`);
    expect(await tags.json()).toEqual({ name: 'team/pushed', tags: ['1'] });
  });

  test('containerd clients get images over TLS, checked by name', async () => {
    const { driver } = await desktop();
    const { containerd } = driver.engines;
    onTestFinished(() => containerd.perform({ do: 'stop' }, FOREVER));
    const allowedImages = { enabled: true, patterns: [`${TLS_NAME}/team/app:1`] };
    await containerd.perform({ do: 'start', spec: { ...engineSpec('containerd'), allowedImages } }, FOREVER);
    await containerd.images?.pull(`${TLS_NAME}/team/app:1`, FOREVER);
    expect(await containerd.images?.has(`${TLS_NAME}/team/app:1`, FOREVER)).toBe(true);
    for (const image of [`${TLS_NAME}/team/other:1`, 'evil.test/x:1']) {
      await expect(containerd.images?.pull(image, FOREVER)).rejects.toMatchObject({ code: 'ERR_FORBIDDEN' });
    }
  });

  test('a port taken while no service ran: the engine restarts with another one', async () => {
    const { driver, directory, open } = await desktop();
    await start(driver, `${NAME}/team/app`);
    const file = join(hostPlaces(directory).run, 'moby.json');
    const portOf = (): number => JSON.parse(readFileSync(file, 'utf8')).gateway.port;
    const gatewayPort = portOf();
    await driver.release?.();
    const thief = createServer();
    await once(thief.listen(gatewayPort, '127.0.0.1'), 'listening');
    onTestFinished(() => void thief.close());
    const next = await open();
    onTestFinished(async () => next.release?.());
    expect(await next.engines.moby.observe(FOREVER)).toEqual({
      state: 'unresponsive',
      message: expect.stringMatching(/allowed images cannot be enforced: .*EADDRINUSE/),
    });
    await start(next, `${NAME}/team/app`);
    expect(portOf()).not.toBe(gatewayPort);
    expect(await build(next, `${NAME}/team/app:1`)).toContain('Successfully built');
  });

  test('an engine that uses another plugin of that name is not left running', async () => {
    const { driver, directory } = await desktop();
    const { plugin } = mobyPlaces(hostPlaces(directory));
    const socket = `/run/docker/plugins/${plugin}.sock`;
    const yesman = createHttpServer((request, response) => {
      request.resume();
      response.end(JSON.stringify({ Implements: ['authz'], Allow: true }));
    });
    mkdirSync(dirname(socket), { recursive: true });
    await once(yesman.listen(socket), 'listening');
    await expect(start(driver, NAME)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: `dockerd does not query its plugin ${plugin} about images`,
    });
    expect(await driver.engines.moby.observe(FOREVER)).toEqual({ state: 'stopped' });
    expect(yesman.address()).toBe(socket);
    yesman.closeAllConnections();
    yesman.close();
    await once(yesman, 'close');
    await start(driver, NAME);
    expect(await driver.engines.moby.observe(FOREVER)).toMatchObject({ state: 'running' });
  });

  test.each(['file', 'socket'])(
    'a %s in place of the socket is left alone, and the engine does not start',
    async (what) => {
      const { driver, directory } = await desktop();
      const { pluginSocket } = mobyPlaces(hostPlaces(directory));
      mkdirSync(dirname(pluginSocket), { recursive: true });
      const other = createServer();
      if (what === 'file') writeFileSync(pluginSocket, 'mine');
      else await once(other.listen(pluginSocket), 'listening');
      await expect(start(driver, NAME)).rejects.toMatchObject({
        code: 'ERR_DRIVER_TERMINAL',
        message: expect.stringContaining(`${pluginSocket} is needed`),
      });
      other.close();
    },
  );
});
