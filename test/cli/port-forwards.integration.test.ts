import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Client } from '../../src/client/contract.ts';
import type { ForwardsReport } from '../../src/plan/port-forwards.ts';
import { rdctl } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { recordingProxy } from '../helpers/recording-proxy.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HEAD = 'apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19 }\n';

async function forwardsOf(client: Client): Promise<ForwardsReport['portForwards']> {
  const { body } = await client.request({ method: 'GET', path: '/v2/port_forwards' });
  return JSON.parse(body.toString()).portForwards;
}

async function stage() {
  const running = await startService();
  await running.converged();
  const proxy = await recordingProxy(running.service.connection);
  const cwd = temporaryDirectory();
  return {
    ...running,
    proxy,
    profile: (text: string, head = HEAD) => writeFileSync(join(cwd, 'p.yaml'), `${head}${text}\n`),
    run: (...argv: string[]) => rdctl([...argv, '-f', 'p.yaml'], { env: proxy.env, cwd }),
    async forwards(): Promise<string[]> {
      const forwards = await forwardsOf(running.client);
      return forwards.map(({ service, hostPort, state }) => `${service} ${hostPort} ${state}`);
    },
    cwd,
  };
}

function fetchText(port: number): Promise<string> {
  return new Promise((done, fail) => {
    get({ host: '127.0.0.1', port, path: '/hello', agent: false }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => done(text));
    }).on('error', fail);
  });
}

const forward = (service: string, k8sPort: number | string, hostPort: number | null) =>
  `{ namespace: default, service: ${service}, k8sPort: ${k8sPort}, hostPort: ${hostPort} }`;

test('a profile creates forwards once; they carry HTTP and survive a service restart', async () => {
  const { profile, run, proxy, service, home } = await stage();
  const port = await freePort();
  profile(`portForwards: [${forward('web', 'http', port)}]`);
  const planned = await run('plan', '--detailed-exitcode');
  expect(planned.exit).toBe(2);
  expect(planned.out).toContain(`  + portForwards[default/web:http]: ${port}\n      live: it listens on 127.0.0.1`);
  expect(planned.out).toContain('1 change, no restart');
  const applied = await run('apply');
  expect(applied).toMatchObject({ exit: 0 });
  expect(applied.err).toContain(`Port forward: default/web:http → ${port}\n`);
  expect(await fetchText(port)).toBe('simulated web: GET /hello\n');
  const writes = proxy.writes().length;
  expect((await run('apply')).out).toMatch(/^Nothing to change\.\n/);
  expect(proxy.writes()).toHaveLength(writes);
  await service.stop('a restart');
  await expect(fetchText(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });

  const again = await startService({ home });
  await again.converged();
  await expect.poll(async () => (await forwardsOf(again.client))[0]?.state).toBe('listening');
  expect(await fetchText(port)).toBe('simulated web: GET /hello\n');
});

test('a failing extension does not block them', async () => {
  const { profile, run, forwards } = await stage();
  const port = await freePort();
  const settings = {
    version: 19,
    application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } },
    containerEngine: { allowedImages: { enabled: true, patterns: ['debian'] } },
  };
  const head = `apiVersion: rdctl/v1\nkind: Profile\nsettings: ${JSON.stringify(settings)}\n`;
  profile(`portForwards: [${forward('web', 80, port)}]`, head);
  const warning =
    'The extension simulated/hello:1.0.0 is not among the allowed images: it can be installed only where moby has it already.';
  expect((await run('plan')).out).toContain(warning);
  const applied = await run('apply');
  expect(applied).toMatchObject({ exit: 1 });
  expect(applied.err).toContain('Everything else has been applied.');
  expect(await forwards()).toEqual([`web ${port} listening`]);
  expect((await run('plan')).out).toContain('1 change, no restart');
});

test('moves, swaps, removes and prunes', async () => {
  const { profile, run, forwards } = await stage();
  const [a, b, c] = [await freePort(), await freePort(), await freePort()];
  profile(`portForwards: [${forward('web', 80, a)}, ${forward('kubernetes', 443, b)}]`);
  await run('apply');
  profile(`portForwards: [${forward('web', 80, b)}, ${forward('kubernetes', 443, a)}]`);
  const swap = await run('plan');
  expect(swap.out).toContain(`  ~ portForwards[default/web:80]: ${a} → ${b}`);
  expect((await run('apply')).exit).toBe(0);
  expect((await forwards()).sort()).toEqual([`kubernetes ${a} listening`, `web ${b} listening`]);
  profile(`portForwards: [${forward('web', 80, null)}]`);
  expect((await run('plan')).out).toContain(`  - portForwards[default/web:80]: ${b} → (removed)`);
  expect((await run('apply')).exit).toBe(0);
  expect(await forwards()).toEqual([`kubernetes ${a} listening`]);
  profile(`portForwards: [${forward('web', 80, c)}]\nprune: [portForwards]`);
  expect((await run('apply')).exit).toBe(0);
  expect(await forwards()).toEqual([`web ${c} listening`]);
  profile('prune: [portForwards]');
  expect((await run('apply')).exit).toBe(0);
  expect(await forwards()).toEqual([]);
});

test('can be requested while the cluster is off, and open with it', async () => {
  const { profile, run, forwards } = await stage();
  const port = await freePort();
  profile(`portForwards: [${forward('web', 80, port)}]\nstate: stopped`);
  expect((await run('apply')).exit).toBe(0);
  expect(await forwards()).toEqual([`web ${port} waiting`]);
  expect((await run('apply')).out).toMatch(/^Nothing to change\.\n/);
  profile(`portForwards: [${forward('web', 80, port)}]\nstate: started`);
  expect((await run('plan')).out).not.toContain('portForwards[');
  expect((await run('apply')).exit).toBe(0);
  await expect.poll(forwards).toEqual([`web ${port} listening`]);
});

test('apply --previous restores the earlier forwards and removes the others', async () => {
  const { profile, run, forwards, proxy, cwd } = await stage();
  const { env } = proxy;
  const [a, b, c] = [await freePort(), await freePort(), await freePort()];
  profile(`portForwards: [${forward('web', 80, a)}, ${forward('kubernetes', 443, b)}]`);
  await run('apply');
  const before = (await forwards()).sort();
  profile(`portForwards: [${forward('web', 'http', c)}]\nprune: [portForwards]`);
  await run('apply');
  expect(await forwards()).toEqual([`web ${c} listening`]);
  const back = await rdctl(['apply', '--previous'], { env, cwd });
  expect(back).toMatchObject({ exit: 0 });
  expect(back.err).not.toContain('warning');
  expect((await forwards()).sort()).toEqual(before);
  expect((await rdctl(['apply', '--previous'], { env, cwd })).exit).toBe(0);
  expect(await forwards()).toEqual([`web ${c} listening`]);
});

test('an apply of only forwards shows no earlier phase', async () => {
  const { profile, run, proxy, cwd } = await stage();
  const { env } = proxy;
  profile(`portForwards: [${forward('web', 80, await freePort())}]`);
  const { out, err } = await run('apply');
  expect(out).toMatch(/^Converged in /);
  expect(err).not.toMatch(/cluster start|engine start/);
  profile(`portForwards: [${forward('web', 80, await freePort())}]`);
  const { out: json } = await rdctl(['apply', '-f', 'p.yaml', '-o', 'json'], { env, cwd });
  expect(JSON.parse(json)).toMatchObject({ outcome: 'applied', phases: [] });
});

test('reports a port in use, and plans without a running service', async () => {
  const { profile, run, service, forwards, client, env, cwd } = await stage();
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const taken = typeof address === 'object' && address ? address.port : 0;
  profile(`portForwards: [${forward('web', 80, taken)}]`);
  const { exit, err } = await run('apply');
  expect(exit).toBe(1);
  expect(err).toContain(`The forward default/web:80 could not be set: 127.0.0.1:${taken} is in use by another program`);
  expect(err).toContain('\nUse another host port, or end the program that has this one.\n');
  expect(await forwards()).toEqual([]);
  const port = await freePort();
  await client.addPortForward({ namespace: 'default', service: 'web', k8sPort: 80, hostPort: port });
  await service.stop('to plan without it');
  const offline = await rdctl(['plan', '-f', 'p.yaml'], { env, cwd });
  expect(offline.out).toContain(`  ~ portForwards[default/web:80]: ${port} → ${taken}`);
});

test('a saved plan includes the forwards', async () => {
  const { profile, run, forwards, cwd, proxy } = await stage();
  const port = await freePort();
  profile(`portForwards: [${forward('web', 80, port)}]`);
  expect((await run('plan', '--out-file', 'saved.json')).exit).toBe(0);
  const apply = () => rdctl(['apply', 'saved.json'], { env: proxy.env, cwd });
  expect((await apply()).exit).toBe(0);
  expect(await forwards()).toEqual([`web ${port} listening`]);
  expect((await apply()).exit).toBe(6);
});

test.each([
  [`[${forward('web', 80, 8080)}, ${forward('web', 80, 8081)}]`, '4:83: default/web:80 is forwarded twice'],
  [
    `[${forward('web', 80, 8080)}, ${forward('api', 80, 8080)}]`,
    'hostPort 8080 is already used by entry 1 of the list',
  ],
  [`[${forward('web', 80, 0)}]`, 'hostPort cannot be 0'],
  [`[${forward('Web', 80, 1)}]`, 'service cannot be'],
  [`[${forward('web', '"no such port name"', 1)}]`, 'k8sPort cannot be'],
])('validate refuses %s', async (list, text) => {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'p.yaml'), `${HEAD}portForwards: ${list}\n`);
  const { exit, out } = await rdctl(['validate', '-f', 'p.yaml'], { cwd });
  expect(exit).toBe(3);
  expect(out).toContain(text);
});
