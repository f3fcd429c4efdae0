import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { startApi } from '../helpers/api.ts';
import { freePort } from '../helpers/free-port.ts';
import { startService } from '../helpers/service.ts';

const request = (rest: Partial<PlanRequest>): PlanRequest => ({ settings: {}, state: 'unmanaged', prune: [], ...rest });
const CONTAINERD = { containerEngine: { name: 'containerd' } };
const HOST_PORT = await freePort();
const FORWARDS = {
  entries: [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: HOST_PORT }],
  exclusive: false,
};

/** Every status that a service reports, until the test ends. */
function watching({ client }: Awaited<ReturnType<typeof startService>>) {
  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const statuses: StatusDocument[] = [];
  const over = client.watch?.((status) => statuses.push(status), leave.signal).catch((error: unknown) => error);
  return { statuses, over, leave };
}

test('settings and power are written at once, as one generation', async () => {
  const running = await startService();
  const { client } = running;
  const { generation } = await running.converged();
  const asked = request({ settings: CONTAINERD, state: 'stopped' });
  const plan = await client.plan(asked);
  expect(await client.apply(asked, plan.tag ?? '')).toEqual({
    ...{ kind: 'ApplyReply', formatVersion: 1, continues: false },
    generation: generation + 1,
    sent: ['settings', 'power'],
  });
  const status = await running.converged(generation + 1);
  expect(status).toMatchObject({
    power: 'stopped',
    backendState: 'STOPPED',
    counters: { settingsWrites: 1, restarts: 0 },
  });
  // The same request again: a plan without changes writes nothing.
  const empty = await client.plan(asked);
  expect(empty.changes).toEqual([]);
  expect(await client.apply(asked, empty.tag ?? '')).toMatchObject({ generation: generation + 1, sent: [] });
});

test('an accepted apply finishes after its client disconnects', async () => {
  const running = await startService();
  const { client } = running;
  await running.converged();
  const asked = request({
    settings: { ...CONTAINERD, application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } } },
    portForwards: FORWARDS,
  });
  const plan = await client.plan(asked);
  expect(plan.changes.map(({ path }) => path)).toEqual([
    'application.extensions.installed',
    'containerEngine.name',
    'portForwards',
  ]);
  expect(await client.apply(asked, plan.tag ?? '')).toMatchObject({ continues: true });
  await vi.waitFor(async () => expect((await client.status()).apply?.state).toBe('done'), { timeout: 30_000 });
  expect((await client.plan(asked)).changes).toEqual([]);
  const { live } = await client.planWithLive(asked);
  expect(live.portForwards).toEqual([{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: HOST_PORT }]);
});

test('a plan comes with the state that it was compared with, on request', async () => {
  const { client, ports } = startApi({ locks: { containerEngine: { name: true } } });
  const asked = request({ settings: { images: { showAll: false } } });
  const { plan, live } = await client.planWithLive(asked);
  const { settings, machine, power } = ports.store.snapshot().desired;
  expect(live).toEqual({ settings, machine, locks: { containerEngine: { name: true } }, power, portForwards: [] });
  expect(plan).toEqual(await client.plan(asked));
});

test('settings that are not valid are refused without a write, whatever the tag says', async () => {
  const { client, ports } = startApi({ platform: 'win32' });
  const password = (value: unknown) =>
    request({ settings: { experimental: { virtualMachine: { proxy: { password: value } } } } as never });
  // A plan hides secrets, so both have the same tag.
  const { tag = '' } = await client.plan(password('secret'));
  await expect(client.apply(password(5), tag)).rejects.toMatchObject({ code: 'ERR_SETTINGS_INVALID' });
  expect(ports.store.snapshot().desired.generation).toBe(1);
});

test('refuses a plan other than the approved one, and a plan that cannot be carried out', async () => {
  const { client, ports } = startApi({ locks: { containerEngine: { name: true } } });
  const asked = request({ settings: { images: { showAll: false } } });
  const { tag = '' } = await client.plan(asked);
  await client.putSettings({ version: 19, application: { debug: true } });
  await expect(client.apply(asked, tag)).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
  const locked = request({ settings: CONTAINERD });
  const plan = await client.plan(locked);
  await expect(client.apply(locked, plan.tag ?? '')).rejects.toMatchObject({ code: 'ERR_SETTING_LOCKED' });
  expect(ports.store.snapshot().desired).toMatchObject({ generation: 2, settings: { images: { showAll: true } } });
});

test('refuses port forwards without a cluster, and writes nothing', async () => {
  const { client, ports } = startApi();
  const asked = request({ settings: CONTAINERD, portForwards: FORWARDS });
  const { tag = '', changes } = await client.plan(asked);
  expect(changes.find(({ path }) => path === 'portForwards')?.blocked).toMatchObject({ by: 'unsupported' });
  await expect(client.apply(asked, tag)).rejects.toMatchObject({ code: 'ERR_SETTING_UNSUPPORTED' });
  expect(ports.store.snapshot().desired.generation).toBe(1);
});

test('writes nothing while an earlier apply is in progress', async () => {
  let open = () => {};
  const held = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { client, ports } = startApi({
    portForwards: {
      ensure: () => held.then(() => ({ ...FORWARDS.entries[0], state: 'listening', connections: 0 }) as never),
      remove: async () => false,
      list: () => ({ kind: 'PortForwards', formatVersion: 1, supported: true, portForwards: [] }),
      close: async () => undefined,
    },
  });
  const apply = async (asked: PlanRequest) => client.apply(asked, (await client.plan(asked)).tag ?? '');
  expect(await apply(request({ portForwards: FORWARDS }))).toMatchObject({ continues: true, sent: [] });
  const other = request({ settings: CONTAINERD });
  await expect(apply(other)).rejects.toMatchObject({ code: 'ERR_BACKEND_LOCKED' });
  expect(ports.store.snapshot().desired.generation).toBe(2);
  open();
  await vi.waitFor(async () => expect((await client.status()).apply?.state).toBe('done'));
  expect(await apply(other)).toMatchObject({ sent: ['settings'] });
});

test('of two concurrent applies, one succeeds and the other is refused', async () => {
  let open = () => {};
  const held = new Promise<void>((resolve) => {
    open = resolve;
  });
  const ensure = vi.fn(() =>
    held.then(() => ({ ...FORWARDS.entries[0], state: 'listening', connections: 0 }) as never),
  );
  // Neither the generation nor the list of forwards differs.
  const { client } = startApi({
    persist: async () => undefined,
    portForwards: {
      ensure,
      remove: async () => false,
      list: () => ({ kind: 'PortForwards', formatVersion: 1, supported: true, portForwards: [] }),
      close: async () => undefined,
    },
  });
  const asked = request({ portForwards: FORWARDS });
  const { tag = '' } = await client.plan(asked);
  const ended = await Promise.allSettled([
    client.apply(asked, tag),
    client.apply(asked, tag),
    client.apply(asked, tag),
  ]);
  expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
  open();
  await vi.waitFor(async () => expect((await client.status()).apply?.state).toBe('done'));
  expect(ensure).toHaveBeenCalledTimes(1);
});

test('a failed save does not block the next apply', async () => {
  let full = true;
  const { client } = startApi({
    persist: async () => {
      if (full) throw new RdError('ERR_IO', 'no space left on the device');
    },
    portForwards: {
      ensure: async () => ({ ...FORWARDS.entries[0], state: 'listening', connections: 0 }) as never,
      remove: async () => false,
      list: () => ({ kind: 'PortForwards', formatVersion: 1, supported: true, portForwards: [] }),
      close: async () => undefined,
    },
  });
  const asked = request({ settings: CONTAINERD, portForwards: FORWARDS });
  const { tag = '' } = await client.plan(asked);
  await expect(client.apply(asked, tag)).rejects.toMatchObject({ code: 'ERR_IO' });
  expect((await client.status()).apply).toBeUndefined();
  full = false;
  expect(await client.apply(asked, tag)).toMatchObject({ sent: ['settings'], continues: true });
});

test('the tag covers cost and losses, but not what is currently running', async () => {
  const { client, script } = startApi();
  const asked = request({ settings: CONTAINERD });
  const tagOf = async () => (await client.plan(asked)).tag;
  const before = await tagOf();
  expect(await tagOf()).toBe(before);
  script.observed = { ...script.observed, machine: { state: 'off' } };
  expect(await tagOf()).toBe(before);
  const other: Plan = await client.plan(request({ settings: { images: { showAll: false } } }));
  expect(other.tag).not.toBe(before);
});

test('events stream the current status and every change to several readers until the service stops', async () => {
  const running = await startService();
  await running.converged();
  const [one, two] = [watching(running), watching(running)];
  await vi.waitFor(() => expect([one.statuses.length, two.statuses.length]).toEqual([1, 1]));
  const { generation = 0 } = await running.client.putSettings({ version: 19, ...CONTAINERD });
  for (const { statuses } of [one, two]) {
    await vi.waitFor(() => expect(statuses.at(-1)).toMatchObject({ converged: true, observedGeneration: generation }), {
      timeout: 30_000,
    });
    expect(statuses.some(({ converged }) => !converged)).toBe(true);
    expect(new Set(statuses.map((status) => JSON.stringify(status))).size).toBe(statuses.length);
  }
  two.leave.abort();
  expect(await two.over).toMatchObject({ code: 'ERR_CANCELLED' });
  await running.service.stop('the test stops it');
  // Closed cleanly: a connection that delays the shutdown is reset, which would be an error here.
  expect(await one.over).toBeUndefined();
});

test('events include changes from outside the loop, such as snapshot progress', async () => {
  const { app, ports, client } = startApi();
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const { watch } = createClient({ ...client.connection, port });
  const leave = new AbortController();
  const told: (string | undefined)[] = [];
  const over = watch?.(({ maintenance }) => told.push(maintenance), leave.signal).catch(() => undefined);
  await vi.waitFor(() => expect(told).toEqual([undefined]));
  ports.maintenance = () => 'copying 3 GiB';
  await vi.waitFor(() => expect(told).toEqual([undefined, 'copying 3 GiB']), { timeout: 10_000 });
  leave.abort();
  await over;
});
