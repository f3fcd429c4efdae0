import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { EngineDriver, Look } from '../../src/drivers/driver.ts';
import { mobyEngine } from '../../src/drivers/engines/moby.ts';
import { lifelines } from '../../src/drivers/machines/shared/lifelines.ts';
import type { Shell } from '../../src/drivers/shell.ts';
import { engineSpec } from '../contract/driver-suite.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { scriptedShell } from './scripted-shell.ts';

const NEVER = new AbortController().signal;

/** An engine on a dockerd that has these containers, counts what it is asked, and reports events to who follows them. */
async function countingDockerd({ events = true } = {}) {
  const path = join(temporaryDirectory(), 'docker.sock');
  const containers = ['web'];
  const asked: string[] = [];
  const followers = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const route = request.url?.split('?')[0] ?? '';
    asked.push(route);
    response.setHeader('server', 'Docker/26.1.5 (linux)');
    if (route === '/_ping') return void response.end('OK');
    if (route === '/events') {
      if (!events) return void response.writeHead(403).end('{"message":"no"}');
      response.setHeader('content-type', 'application/json');
      response.flushHeaders();
      followers.add(response);
      return;
    }
    if (route === '/images/json') return void response.end('[{}]');
    if (route === '/containers/json') {
      const list = containers.map((name) => ({ Id: name, Names: [`/${name}`], State: 'running' }));
      return void response.end(JSON.stringify(list));
    }
    response.end('{"HostConfig":{"RestartPolicy":{"Name":"always"}}}');
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const lines = lifelines({ now: () => 0 });
  const unwatch = lines.watch(() => undefined);
  onTestFinished(() => {
    unwatch();
    server.closeAllConnections();
    server.close();
  });
  const { shell, crash } = scriptedShell();
  const hold: Shell['hold'] = async (at, ...rest) => {
    if (at.endsWith('docker.sock')) await lines.hold(path, ...rest);
  };
  const holds: Shell['holds'] = async (at) => at.endsWith('docker.sock') && lines.held(path) > 0;
  const engine: EngineDriver = mobyEngine({ ...shell, hold, holds, localSocket: async () => path }, '/g');
  await engine.perform({ do: 'start', spec: engineSpec('moby') }, NEVER);
  const names = async (how?: Look) => {
    const status = await engine.observe(NEVER, how);
    return status.state === 'running' ? status.workload.running?.map(({ name }) => name) : undefined;
  };
  const count = (route: string) => asked.filter((each) => each === route).length;
  return {
    ...{ engine, crash, clock: shell.clock, names, count, containers, lines, path, followers },
    report: (action: string) => {
      for (const follower of followers) follower.write(`${JSON.stringify({ Type: 'container', Action: action })}\n`);
    },
  };
}

test('routine looks follow the events of dockerd over the one connection that shows its end', async () => {
  const { names, count, containers, lines, path, followers, report } = await countingDockerd();
  await names('routine');
  await expect.poll(() => followers.size).toBe(1);
  await expect
    .poll(async () => {
      const before = count('/images/json');
      await names('routine');
      return count('/images/json') - before;
    })
    .toBe(0);
  const [looks, pings] = [count('/images/json'), count('/_ping')];
  for (let round = 0; round < 10; round += 1) expect(await names('routine')).toEqual(['web']);
  expect(count('/images/json')).toBe(looks);
  expect(count('/_ping')).toBe(pings + 10);
  containers.push('new');
  report('start');
  await expect.poll(() => names('routine')).toEqual(['web', 'new']);
  expect(count('/images/json')).toBe(looks + 1);
  expect(followers.size).toBe(1);
  expect(lines.held(path)).toBe(1);
});

test('a full look names what runs now, without an event', async () => {
  const { names, count, containers } = await countingDockerd();
  for (let round = 1; round <= 5; round += 1) {
    containers.push(`new${round}`);
    expect(await names()).toHaveLength(1 + round);
    expect(count('/images/json')).toBe(round);
  }
});

test('a dockerd that reports no events is looked at in full each time', async () => {
  const { names, count, containers } = await countingDockerd({ events: false });
  for (let round = 1; round <= 5; round += 1) {
    containers.push(`new${round}`);
    expect(await names('routine')).toHaveLength(1 + round);
    expect(count('/images/json')).toBe(round);
  }
});

test('a look stands while dockerd is followed: not after an event, and not without its connection', async () => {
  const { engine, names, followers, report } = await countingDockerd();
  const stands = async () => ((await engine.standsMs?.()) ?? 0) > 0;
  const isFollowed = () => expect.poll(async () => (await names('routine')) && stands()).toBe(true);
  expect(await stands()).toBe(false);
  await isFollowed();
  report('start');
  await expect.poll(stands).toBe(false);
  await isFollowed();
  for (const follower of followers) follower.destroy();
  await expect.poll(stands).toBe(false);
});

test('no look stands on a dockerd that reports no events', async () => {
  const { engine, names } = await countingDockerd({ events: false });
  for (let round = 0; round < 3; round += 1) {
    await names('routine');
    expect(await engine.standsMs?.()).toBe(0);
  }
});

test('no look stands once the containerd of dockerd has ended, which dockerd outlives', async () => {
  const { engine, crash, names, clock } = await countingDockerd();
  await expect.poll(async () => (await names('routine')) && engine.standsMs?.()).toBeGreaterThan(0);
  crash('moby-containerd');
  await clock.sleep(20_000);
  expect(await engine.standsMs?.()).toBe(0);
});
