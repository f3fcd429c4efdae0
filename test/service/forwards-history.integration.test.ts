import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { readHistory } from '../../src/state/history-file.ts';
import { rdctl } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PATH = 'portForwards';
const WEB = 'default/web:80';

/** A service with a cluster, and the tool beside it. */
async function scene(home = temporaryDirectory()) {
  const running = await startService({ home });
  await running.converged();
  const cwd = temporaryDirectory();
  const run = (...argv: string[]) => rdctl(argv, { env: running.env, cwd });
  const file = join(home, 'state', 'port-forwards.json');
  const forward = (method: 'POST' | 'DELETE', hostPort?: number) =>
    running.client.request({
      method,
      path: `/v1/port_forwarding${method === 'DELETE' ? '?namespace=default&service=web&k8sPort=80' : ''}`,
      ...(hostPort === undefined
        ? {}
        : { body: JSON.stringify({ namespace: 'default', service: 'web', k8sPort: 80, hostPort }) }),
    });
  return {
    ...running,
    run,
    forward,
    file,
    entries: () => readHistory(running.here.historyFile),
    stored: () =>
      JSON.parse(readFileSync(file, 'utf8')).portForwards.map((each: { hostPort: number }) => each.hostPort),
    profile: (text: string) => writeFileSync(join(cwd, 'p.yaml'), `apiVersion: rdctl/v1\nkind: Profile\n${text}\n`),
  };
}

const brief = ({ by, changes, outcome }: HistoryEntry) => [by.how, changes, outcome?.result];

test('a forward made alone has an entry of its own, and a rollback brings it back', async () => {
  const { forward, entries, run, stored, client } = await scene();
  const [one, other] = [await freePort(), await freePort()];
  const { generation } = await client.status();
  await forward('POST', one);
  await forward('POST', one);
  await forward('POST', other);
  await forward('DELETE');
  await forward('DELETE');
  await expect
    .poll(async () => (await entries()).map(brief))
    .toEqual([
      ['api', [{ path: PATH, key: WEB, after: one }], 'converged'],
      ['api', [{ path: PATH, key: WEB, before: one, after: other }], 'converged'],
      ['api', [{ path: PATH, key: WEB, before: other }], 'converged'],
    ]);
  expect(await client.status()).toMatchObject({ generation: generation + 3, converged: true });
  expect((await run('rollback', '--plan')).out).toContain(`+ portForwards[${WEB}]: ${other}`);
  expect((await run('rollback', String(generation + 1))).exit).toBe(0);
  expect(stored()).toEqual([one]);
  await expect
    .poll(async () => (await entries()).at(-1))
    .toMatchObject({
      by: { how: 'rollback', to: generation + 1 },
      changes: [{ path: PATH, key: WEB, after: one }],
      outcome: { result: 'converged' },
    });
  expect((await run('rollback')).exit).toBe(0);
  expect(stored()).toEqual([]);
  expect((await run('history', '--path', PATH)).out).toContain(`portForwards[${WEB}]: ${one} → ${other}`);
});

test('forwards and extensions of an apply belong to it, and one rollback undoes all of it', async () => {
  const { profile, run, entries, stored, client, converged } = await scene();
  const port = await freePort();
  profile(`settings:
  version: 19
  images: { namespace: web }
  application: { extensions: { installed: { simulated/hello: 1.0.0, simulated/panel: v1 } } }
portForwards: [{ namespace: default, service: web, k8sPort: 80, hostPort: ${port} }]`);
  expect((await run('apply', '-f', 'p.yaml')).exit).toBe(0);
  await converged();
  const inShort = async () =>
    (await entries()).map(({ by, changes, outcome }) => [
      by.how,
      changes.map(({ path, key }) => key ?? path),
      outcome?.result,
    ]);
  // Outcomes are recorded a moment after the status has them.
  await expect.poll(inShort).toEqual([
    ['apply', ['images.namespace', WEB], 'converged'],
    ['apply', ['simulated/hello'], 'converged'],
    ['apply', ['simulated/panel'], 'converged'],
  ]);
  const all = await entries();
  const [first] = all;
  expect(all.map(({ by }) => by.continues)).toEqual([undefined, first?.generation, first?.generation]);
  expect((await run('rollback')).exit).toBe(0);
  await converged();
  expect(stored()).toEqual([]);
  expect((await client.settings()).settings).toMatchObject({
    images: { namespace: 'default' },
    application: { extensions: { installed: {} } },
  });
});

test('extensions installed alone name the client, and those of an apply alone belong together', async () => {
  const { profile, run, entries, client } = await scene();
  await run('extension', 'install', 'simulated/hello:1.0.0');
  expect((await entries()).at(-1)?.by).toEqual({ how: 'api', program: expect.stringMatching(/^rdctl\//) });
  profile(
    'settings: { version: 19, application: { extensions: { installed: { simulated/hello: 1.1.0, simulated/panel: v1 } } } }',
  );
  expect((await run('apply', '-f', 'p.yaml')).exit).toBe(0);
  expect((await run('rollback')).exit).toBe(0);
  expect((await client.settings()).settings).toMatchObject({
    application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } },
  });
});

test('a forward that cannot be opened is the reason why the apply failed', async () => {
  const { profile, run, entries } = await scene();
  const holder = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void holder.close());
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  profile(`portForwards: [{ namespace: default, service: web, k8sPort: 80, hostPort: ${port} }]
settings: { version: 19 }`);
  expect((await run('apply', '-f', 'p.yaml')).exit).toBe(1);
  await expect
    .poll(async () => (await entries()).at(-1)?.outcome)
    .toMatchObject({
      result: 'failed',
      reason: expect.stringContaining(`127.0.0.1:${port} is in use`),
    });
});

test('forwards that a killed service had announced are completed by the next one', async () => {
  const { forward, here, service, home, file } = await scene();
  const [one, other] = [await freePort(), await freePort()];
  await forward('POST', one);
  const before = readFileSync(file, 'utf8');
  await forward('POST', other);
  // After the entry and the number, before the file of the forwards.
  const recorded = () => readFileSync(here.historyFile, 'utf8').trimEnd().split('\n');
  await expect.poll(() => recorded().length).toBe(4);
  const lines = recorded();
  await service.stop('as if it was killed');
  writeFileSync(file, before);
  writeFileSync(here.historyFile, `${lines.slice(0, -1).join('\n')}\n`);
  const again = await scene(home);
  expect(again.stored()).toEqual([other]);
  const ofForwards = (await again.entries()).filter(({ changes }) =>
    changes.some(({ path }) => path === 'portForwards'),
  );
  expect(ofForwards.map(({ outcome }) => outcome?.result)).toEqual(['converged', 'converged']);
});
