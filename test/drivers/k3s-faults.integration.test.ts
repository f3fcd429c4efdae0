import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { apiClient, nodesHealth } from '../../src/drivers/clusters/k3s/api.ts';
import type { Shell } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';
import { CERTIFICATES, OTHER_CERTIFICATES } from '../helpers/k3s-certificates.ts';
import { type Faults, k3sMachine, listening, NEVER } from '../helpers/k3s-machine.ts';

test('a k3s that exits at once: reports its last output, and starts once it can', async () => {
  const { start, stop, look, say } = await k3sMachine();
  say({ start: 'exit' });
  await expect(start()).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(/^k3s exited during its start: .*cannot start/),
    advice: expect.stringMatching(/k3s\.log/),
  });
  expect(await look()).toMatchObject({
    state: 'unresponsive',
    installedVersion: '1.33.6',
    message: expect.stringMatching(/cannot start/),
  });
  say();
  await start();
  expect(await look()).toMatchObject({ state: 'running', ready: true });
  await stop();
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
});

test.each<[string, Faults, RegExp]>([
  ['hangs', { start: 'hang' }, /has not written its kubeconfig/],
  ['writes no kubeconfig', { start: 'no kubeconfig' }, /has not written its kubeconfig/],
  ['is not ready', { readyz: 500 }, /returned 500 for \/readyz/],
  ['breaks off', { api: 'breaks' }, /does not respond on port/],
  ['has no node', { nodes: 'none' }, /no node has joined/],
  ['garbles its nodes', { nodes: 'garbled' }, /did not send a list of nodes/],
  ['has a node without network', { node: 'cni plugin not initialized' }, /not ready: cni plugin not initialized/],
  ['has the certificate of another', { authority: OTHER_CERTIFICATES.ca }, /does not respond on port .*certificate/],
])('a k3s that %s is waited for, given up with the reason, and left under observation', async (_, faults, reason) => {
  const { impatient, spec, say, look, start } = await k3sMachine();
  say(faults);
  const step = { do: 'start', spec: spec() } as const;
  const isUp = (log: string) => faults.start === 'hang' || log.includes('k3s is up and running');
  const waits: string[] = [];
  await expect(impatient(isUp).perform(step, NEVER, (what) => waits.push(what))).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(reason),
  });
  expect(waits.at(-1)).toMatch(reason);
  expect(await look()).toMatchObject({ state: 'running', ready: false, message: expect.stringMatching(reason) });
  say();
  if (!faults.start && !faults.authority) await start();
  else await start({ traefik: false });
  expect(await look()).toMatchObject({ state: 'running', ready: true });
});

test('a k3s that crashes is noticed by the next observation, and recovers with its data', async () => {
  const { start, stop, look, say, database } = await k3sMachine();
  await start();
  say({ api: 'crash' });
  expect(await look()).toMatchObject({ state: 'running', ready: false });
  say();
  await expect.poll(look).toMatchObject({
    state: 'unresponsive',
    installedVersion: '1.33.6',
    message: expect.stringMatching(/k3s has exited/),
  });
  await stop();
  await start();
  expect(database()).toMatchObject({ starts: 2 });
});

test('a program that is another release, or does not run, is not kept', async () => {
  const { start, say, look } = await k3sMachine();
  for (const [version, reason] of [
    ['v1.30.0+k3s1', /reports v1\.30\.0\+k3s1/],
    ['garbled', /reports no k3s version/],
    ['fails', /exec format error/],
  ] as const) {
    say({ version });
    await expect(start()).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringMatching(reason),
    });
    expect(await look()).toEqual({ state: 'absent' });
  }
  say();
  await start();
});

test('a damaged program in the machine is reinstalled', async () => {
  const { start, stop, look, data } = await k3sMachine();
  await start();
  await stop();
  const program = join(data, 'k3s', 'programs', 'v1.33.6+k3s2', 'k3s');
  writeFileSync(program, readFileSync(program).subarray(0, 100));
  await start();
  expect(await look()).toMatchObject({ state: 'running', ready: true });
});

test('a port in use', async () => {
  const taken = await listening(createServer((socket) => socket.destroy()));
  onTestFinished(() => void taken.close());
  const address = taken.address();
  const { start } = await k3sMachine();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(start({ port })).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringMatching(/EADDRINUSE/),
  });
});

test('a host port in use fails a start before k3s runs', async () => {
  const { start, look } = await k3sMachine((shell) => ({
    ...shell,
    async localPort() {
      throw new RdError('ERR_PORT_IN_USE', '127.0.0.1:6443 of this computer is in use');
    },
  }));
  await expect(start()).rejects.toMatchObject({ code: 'ERR_PORT_IN_USE' });
  expect(await look()).toEqual({ state: 'absent' });
});

test('a start that is canceled during the download resumes it the next time', async () => {
  const { cluster, server, spec, start, look } = await k3sMachine();
  const path = '/v1.33.6+k3s2/k3s';
  const abort = new AbortController();
  server.mischief.set(path, () => abort.abort());
  await expect(cluster.perform({ do: 'start', spec: spec() }, abort.signal)).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
  expect(await look()).toEqual({ state: 'absent' });
  server.mischief.clear();
  await start();
});

test('a start that is canceled while it waits leaves a cluster that a stop cleans up', async () => {
  const { cluster, spec, say, look, stop } = await k3sMachine();
  say({ start: 'hang' });
  const abort = new AbortController();
  const starting = cluster.perform({ do: 'start', spec: spec() }, abort.signal);
  await expect.poll(look).toMatchObject({ state: 'running', ready: false });
  abort.abort();
  await expect(starting).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await stop();
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
});

const OF_ANOTHER_ENGINE = JSON.stringify({
  release: 'v1.33.6+k3s1',
  spec: {
    version: '1.33.6',
    port: 6443,
    traefik: true,
    flannel: true,
    spinkube: false,
    localhostOnly: false,
    engine: 'podman',
  },
});
test.each(['', '{', '{"spec":{}}', '{"release":"v1.33.6+k3s1","spec":{"version":1}}', OF_ANOTHER_ENGINE])(
  'a damaged record (%j) is not trusted, and a stop cleans it up',
  async (text) => {
    const { start, stop, look, run, pid, events } = await k3sMachine();
    await start();
    writeFileSync(join(run, 'k3s.json'), text);
    expect(await look()).toMatchObject({ state: 'unresponsive', message: expect.stringMatching(/damaged/) });
    await stop();
    expect(await pid()).toBeUndefined();
    expect(events.slice(-2)).toEqual(['moby stops pods', 'containerd stops pods']);
  },
);

test('an unresponsive engine does not keep the cluster from stopping', async () => {
  const { start, look, again, options, logged } = await k3sMachine();
  await start();
  const moby = {
    ...options.engines.moby,
    endPods: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'dockerd did not answer')),
  };
  await again({ engines: { ...options.engines, moby } }).perform({ do: 'stop' }, NEVER);
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
  expect(logged.some((line) => line.includes('dockerd did not answer'))).toBe(true);
});

test('images that cannot be loaded are left to the pods, and loaded the next time', async () => {
  const { again, options, spec, start, stop, events, logged } = await k3sMachine();
  const moby = {
    ...options.engines.moby,
    loadImages: () => Promise.reject(new RdError('ERR_FORBIDDEN', 'not among the allowed images')),
  };
  const refusing = again({ engines: { ...options.engines, moby } });
  await refusing.perform({ do: 'start', spec: spec() }, NEVER);
  expect(logged.some((line) => line.startsWith('warn') && line.includes('not among the allowed images'))).toBe(true);
  await stop();
  await start();
  expect(events).toContain('moby loads images of v1.33.6+k3s2');
});

/** The service is killed at its n-th operation on the machine: nothing after it happens. */
function killedAt(shell: Shell, counter: { left: number }): Shell {
  function mortal<A extends unknown[], R>(work: (...words: A) => Promise<R>): (...words: A) => Promise<R> {
    return async (...words) => {
      counter.left -= 1;
      if (counter.left < 0) throw new Error('killed');
      return work(...words);
    };
  }
  return {
    ...shell,
    run: mortal(shell.run),
    copyIn: mortal(shell.copyIn),
    write: mortal(shell.write),
    remove: mortal(shell.remove),
    start: mortal(shell.start),
    stop: mortal(shell.stop),
    clear: mortal(shell.clear),
  };
}

test.each(['start', 'stop', 'reset'] as const)(
  'a service killed at any point of a %s leaves a state that the next one completes',
  { timeout: 120_000 },
  async (what) => {
    const counter = { left: Number.POSITIVE_INFINITY };
    const machine = await k3sMachine((shell) => killedAt(shell, counter));
    const { start, stop, reset, look, again, spec } = machine;
    const steps = { start: () => start(), stop: () => stop(), reset: () => reset() };
    let kills = 0;
    for (let at = 0; ; at += 1) {
      counter.left = Number.POSITIVE_INFINITY;
      if (what === 'start') {
        await stop();
        await reset();
      } else await start();
      if (what === 'reset') await stop();
      counter.left = at;
      const killed = await steps[what]().then(
        () => false,
        () => true,
      );
      counter.left = Number.POSITIVE_INFINITY;
      if (!killed) break;
      kills += 1;
      // As the loop does: what does not respond is stopped, then the step is repeated.
      const next = again();
      if ((await next.observe(NEVER)).state === 'unresponsive') await next.perform({ do: 'stop' }, NEVER);
      if (what === 'start') {
        // Data of an unknown version would be a dead end.
        expect(await look()).not.toMatchObject({ installedVersion: '' });
        await next.perform({ do: 'start', spec: spec() }, NEVER);
        expect(await look()).toMatchObject({ state: 'running', ready: true, installedVersion: '1.33.6' });
      } else if (what === 'stop') {
        await next.perform({ do: 'stop' }, NEVER);
        expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
      } else {
        await next.perform({ do: 'reset' }, NEVER);
        expect(await look()).toEqual({ state: 'absent' });
      }
    }
    expect(kills).toBeGreaterThan(3);
  },
);

test('a silent API server is waited for with a limit', async () => {
  const silent = await listening(createServer());
  onTestFinished(() => void silent.close());
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { shell } = await k3sMachine();
  const { ca, client: cert, clientKey: key } = CERTIFICATES;
  await expect(apiClient(shell, port, { ca, cert, key }).get('/readyz', NEVER)).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    message: expect.stringMatching(/no response within 5 s/),
  });
  await expect(apiClient(shell, port, { ca, cert, key }).get('/readyz', AbortSignal.abort())).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
});

test.each<[string, unknown, object]>([
  ['no list', 7, { ready: false, waiting: 'no node has joined' }],
  ['a node that says nothing', { items: [{}] }, { ready: false, waiting: 'the node is not ready' }],
  ['nodes of which one is not ready', { items: [nodeThatIs('True'), nodeThatIs('Unknown')] }, { ready: false }],
  ['nodes that are ready', { items: [nodeThatIs('True'), nodeThatIs('True')] }, { ready: true }],
])('nodes: %s', (_, value, expected) => expect(nodesHealth(JSON.stringify(value))).toMatchObject(expected));

function nodeThatIs(status: string) {
  return { status: { conditions: [{ type: 'Ready', status }] } };
}
