import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { sealAgain } from '../helpers/sealed-snapshot.ts';
import { startService, type TestService } from '../helpers/service.ts';

/** The contents of the simulated machine. */
function modelOf({ here }: TestService): Model {
  const file = join(here.state, 'drivers', 'simulated', 'machine.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : emptyModel();
}

/** A client of the engine creates an image. */
function addImage(service: TestService, name: string): void {
  const model = modelOf(service);
  model.engines.moby.images.push(name);
  writeFileSync(join(service.here.state, 'drivers', 'simulated', 'machine.json'), JSON.stringify(model));
}

async function call(service: TestService, method: string, path: string, body?: object) {
  const answer = await service.client.request({ method, path, ...(body ? { body: JSON.stringify(body) } : {}) });
  return { status: answer.status, text: answer.body.toString() };
}

const create = (service: TestService, name: string, description?: string) =>
  call(service, 'POST', '/v1/snapshots', { name, ...(description === undefined ? {} : { description }) });
const restore = (service: TestService, name: string) =>
  call(service, 'POST', `/v1/snapshot/restore?name=${encodeURIComponent(name)}`);
const CREATED = { status: 200, text: 'Snapshot successfully created' };
const RESTORED = { status: 200, text: 'Snapshot successfully restored' };

async function moby(options: Parameters<typeof startService>[0] = {}): Promise<TestService> {
  const service = await startService({ settings: { containerEngine: { name: 'moby' } }, ...options });
  await service.converged();
  return service;
}

test('a snapshot restores settings and state, and later changes are gone', async () => {
  const service = await moby();
  addImage(service, 'before');
  expect(await create(service, 'one', 'first of all')).toEqual(CREATED);
  await service.converged();
  addImage(service, 'after');
  await service.client.putSettings({ version: 19, virtualMachine: { memoryInGB: 7 } });
  await service.converged();
  const before = (await service.client.status()).generation;

  expect(await restore(service, 'one')).toEqual(RESTORED);
  const status = await service.converged();
  expect(status.generation).toBeGreaterThan(before);
  expect(status.backendState).toBe('STARTED');
  expect(modelOf(service).engines.moby.images).toEqual(['before']);
  expect((await service.client.settings()).settings).not.toMatchObject({ virtualMachine: { memoryInGB: 7 } });
  expect(readdirSync(join(service.here.state, 'drivers', 'simulated'))).toEqual(['machine.json']);
  expect(existsSync(join(service.here.state, 'restore.json'))).toBe(false);
  expect(await service.client.backendState()).toEqual({ vmState: 'STARTED', locked: false });
  const list = JSON.parse((await call(service, 'GET', '/v1/snapshots')).text);
  expect(list).toEqual([{ created: expect.any(String), name: 'one', description: 'first of all' }]);
});

test('a restored state that does not run is rolled back', async () => {
  const first = await startService({ settings: { containerEngine: { name: 'containerd' } } });
  await first.converged();
  expect(await create(first, 'with containerd')).toEqual(CREATED);
  await first.service.stop('the test goes on');

  const env = { RDCTL_SIMULATED_FAULTS: 'containerd.start:terminal' };
  const service = await moby({ home: first.home, env });
  addImage(service, 'of now');
  const { status, text } = await restore(service, 'with containerd');
  expect(status).toBe(400);
  expect(text).toMatch(
    /^failed to restore snapshot "with containerd": what was restored did not come up, and what was there before is back: .+containerd/,
  );
  expect((await service.client.settings()).settings).toMatchObject({ containerEngine: { name: 'moby' } });
  expect(await service.converged()).toMatchObject({ backendState: 'STARTED', engine: { name: 'moby' } });
  expect(modelOf(service).engines.moby.images).toEqual(['of now']);
  expect(readdirSync(join(service.here.state, 'drivers', 'simulated'))).toEqual(['machine.json']);
});

// How far the write of the restored settings had come.
test.each(['decided', 'made'])(
  'a restore that is killed when its settings are %s is undone with its settings',
  async (how) => {
    const first = await moby({ settings: { containerEngine: { name: 'moby' }, virtualMachine: { memoryInGB: 7 } } });
    const { home, here } = first;
    const before = (await first.client.settings()).settings as unknown as Settings;
    const after = { ...before, virtualMachine: { ...before.virtualMachine, memoryInGB: 4 } };
    addImage(first, 'of now');
    await first.service.stop('the test goes on');
    const text = readFileSync(here.settingsFile, 'utf8');
    const state = JSON.parse(readFileSync(here.stateFile, 'utf8'));
    const generation = state.generation + 1;

    // The files as a kill leaves them: the data of the snapshot is in place, the data of now beside it.
    const live = join(here.state, 'drivers', 'simulated', 'machine.json');
    renameSync(live, `${live}.before-restore`);
    writeFileSync(live, JSON.stringify(emptyModel()));
    const journal = { format: 1, phase: 'settings', snapshot: 'one', parts: [{ live, hadLive: true, comes: true }] };
    writeFileSync(join(here.state, 'restore.json'), JSON.stringify({ ...journal, settings: { before, after } }));
    const changes = [{ path: 'virtualMachine.memoryInGB', before: 7, after: 4 }];
    const entry = { generation, at: new Date().toISOString(), by: { how: 'restore' }, changes };
    appendFileSync(here.historyFile, `${JSON.stringify({ entry })}\n`);
    writeFileSync(here.stateFile, JSON.stringify({ ...state, generation }));
    if (how === 'made') writeFileSync(here.settingsFile, JSON.stringify(after));
    else writeFileSync(here.stagedSettingsFile, JSON.stringify({ generation, from: text, settings: after }));

    const second = await startService({ home });
    const { notices } = await second.converged();
    expect(modelOf(second).engines.moby.images).toEqual(['of now']);
    expect((await second.client.settings()).settings).toEqual(before);
    expect(notices.filter((notice) => notice.startsWith('A change of settings'))).toEqual([]);
    expect(notices).toContainEqual(
      expect.stringContaining('the restore of the snapshot "one"; everything is as it was'),
    );
    const { entries } = JSON.parse((await call(second, 'GET', '/v2/history')).text);
    type Shown = { by: { how: string }; changes: { path: string; after?: unknown }[] };
    const memory = entries.flatMap(({ by, changes }: Shown) =>
      changes.filter(({ path }) => path === 'virtualMachine.memoryInGB').map(({ after }) => [by.how, after]),
    );
    expect(memory.slice(-2)).toEqual([
      ['restore', 4],
      ['start', 7],
    ]);
  },
);

test('while the backend is off, the replaced state is kept until the new one runs; a failure then restores it', async () => {
  const first = await startService({ settings: { containerEngine: { name: 'containerd' } } });
  await first.converged();
  expect(await create(first, 'one')).toEqual(CREATED);
  await first.converged();
  await first.client.putSettings({ version: 19, containerEngine: { name: 'moby' } });
  await first.client.setBackendState('STOPPED');
  await first.converged();
  expect(await restore(first, 'one')).toEqual(RESTORED);
  expect((await first.client.settings()).settings).toMatchObject({ containerEngine: { name: 'containerd' } });
  expect(await first.client.status()).toMatchObject({ power: 'stopped', backendState: 'STOPPED' });
  const drivers = join(first.here.state, 'drivers', 'simulated');
  expect(readdirSync(drivers).sort()).toEqual(['machine.json', 'machine.json.before-restore']);
  await first.service.stop('the test goes on');

  const env = { RDCTL_SIMULATED_FAULTS: 'containerd.start:terminal' };
  const second = await startService({ home: first.home, env });
  await second.client.setBackendState('STARTED');
  await expect
    .poll(async () => (await second.client.status()).notices)
    .toEqual(
      expect.arrayContaining([expect.stringMatching(/^The restored snapshot "one" did not come up .*is back\.$/)]),
    );
  expect(await second.converged()).toMatchObject({ backendState: 'STARTED', engine: { name: 'moby' } });
  expect(readdirSync(drivers)).toEqual(['machine.json']);
});

test('cancel undoes the running operation, and its request reports it', async () => {
  const service = await moby({ env: { RDCTL_SIMULATED_LATENCY_MS: '100' } });
  for (const [begin, text] of [
    [() => create(service, 'one'), 'failed to create snapshot: the operation was canceled'],
    [
      () => restore(service, 'zero'),
      'failed to restore snapshot "zero": the operation was canceled, and everything is as it was before',
    ],
  ] as const) {
    if (text.includes('zero')) {
      expect(await create(service, 'zero')).toEqual(CREATED);
      await service.converged();
    }
    const pending = begin();
    await expect.poll(async () => (await service.client.backendState()).locked).toBe(true);
    expect(await create(service, 'another')).toEqual({
      status: 400,
      text: 'failed to create snapshot: backend lock file already exists; if there is no snapshot operation in progress, you can remove this error with `rdctl snapshot unlock`',
    });
    expect(await call(service, 'POST', '/v1/snapshots/cancel')).toEqual({
      status: 200,
      text: 'Snapshot operation canceled',
    });
    expect(await pending).toEqual({ status: 400, text });
    // Listeners find everything restored.
    expect(await service.client.status()).toMatchObject({ converged: true, backendState: 'STARTED', power: 'started' });
    expect(await service.client.backendState()).toMatchObject({ locked: false });
  }
  expect(JSON.parse((await call(service, 'GET', '/v1/snapshots')).text)).toHaveLength(1);
  expect(readdirSync(service.here.snapshots)).toHaveLength(1);
  expect(await call(service, 'POST', '/v1/snapshots/cancel')).toMatchObject({ status: 200 });
});

test('consecutive requests need no waits between them', async () => {
  const service = await moby({ env: { RDCTL_SIMULATED_LATENCY_MS: '150' } });
  expect(await create(service, 'one')).toEqual(CREATED);
  expect(await service.client.status()).toMatchObject({ converged: true, backendState: 'STARTED' });
  await service.client.putSettings({ version: 19, virtualMachine: { memoryInGB: 7 } });
  expect((await service.client.backendState()).vmState).toMatch(/ING$/);
  expect(await restore(service, 'one')).toEqual(RESTORED);
  expect((await service.client.settings()).settings).not.toMatchObject({ virtualMachine: { memoryInGB: 7 } });
});

test('a snapshot is kept when the backend does not start after it', async () => {
  const service = await startService({
    settings: { containerEngine: { name: 'moby' } },
    env: { RDCTL_SIMULATED_FAULTS: 'moby.start:terminal' },
  });
  await expect.poll(async () => (await service.client.backendState()).vmState).toBe('ERROR');
  expect(await create(service, 'one')).toEqual(CREATED);
  expect(await service.client.status()).toMatchObject({ backendState: 'ERROR' });
  expect(readdirSync(service.here.snapshots)).toHaveLength(1);
});

test('until the backend is back, cancel removes the snapshot again', async () => {
  const engine = (name: string) => ({ version: 19, containerEngine: { name } });
  const env = { RDCTL_SIMULATED_LATENCY_MS: '50', RDCTL_SIMULATED_FAULTS: 'moby.start:hang' };
  const service = await startService({ settings: engine('containerd'), env });
  await service.converged();
  const pending = create(service, 'one');
  await expect.poll(async () => (await service.client.backendState()).locked).toBe(true);
  await service.client.putSettings(engine('moby'));
  const listed = async () => JSON.parse((await call(service, 'GET', '/v1/snapshots')).text);
  await expect.poll(listed).toHaveLength(1);
  const canceling = call(service, 'POST', '/v1/snapshots/cancel');
  await expect.poll(listed).toEqual([]);
  await service.client.putSettings(engine('containerd'));
  expect(await pending).toMatchObject({ status: 400 });
  expect(await canceling).toMatchObject({ status: 200 });
  expect(await service.client.status()).toMatchObject({ converged: true });
});

test('settings and power written meanwhile apply afterwards', async () => {
  const service = await moby({ env: { RDCTL_SIMULATED_LATENCY_MS: '100' } });
  const pending = create(service, 'one');
  await expect.poll(async () => (await service.client.backendState()).locked).toBe(true);
  const { generation } = await service.client.putSettings({ version: 19, virtualMachine: { memoryInGB: 7 } });
  const held = await service.client.status();
  expect(held.converged).toBe(false);
  expect(held.conditions.find(({ type }) => type === 'Converged')).toMatchObject({
    reason: 'Held',
    message: expect.stringMatching(/^Creating snapshot "one": /),
  });
  expect(await pending).toEqual(CREATED);
  const status = await service.converged(generation);
  expect(status.machine).toMatchObject({ state: 'on', spec: { memoryGiB: 7 } });
});

test('a service that ends during a snapshot leaves nothing of it', async () => {
  const service = await moby({ env: { RDCTL_SIMULATED_LATENCY_MS: '100' } });
  const pending = create(service, 'one').catch(() => ({ status: 0, text: '' }));
  await expect.poll(async () => (await service.client.backendState()).locked).toBe(true);
  await service.service.stop('the test says so');
  expect((await pending).status).not.toBe(200);
  expect(existsSync(service.here.backendLock)).toBe(false);
  expect(existsSync(service.here.snapshots) ? readdirSync(service.here.snapshots) : []).toEqual([]);
});

test.each(['{"action": "Creating snapshot \\"of another tool\\""}', ''])(
  'a lock file of another tool (%j) is waited for',
  async (text) => {
    const first = await moby();
    await first.service.stop('the test goes on');
    writeFileSync(first.here.backendLock, text);
    const service = await startService({ home: first.home });
    expect(await service.client.backendState()).toEqual({ vmState: 'STOPPED', locked: true });
    const message = (await service.client.status()).conditions.find(({ type }) => type === 'Converged')?.message;
    expect(message).toMatch(/^The backend waits: .*`rdctl snapshot unlock`\.$/);
    if (text !== '') expect(message).toContain('of another tool');
    expect((await create(service, 'one')).text).toContain('backend lock file already exists');
    expect((await call(service, 'PUT', '/v1/k8s_reset', {})).status).toBe(409);
    rmSync(first.here.backendLock);
    expect(await service.converged()).toMatchObject({ backendState: 'STARTED' });
  },
);

test('the lock of a killed service is removed together with its unfinished work', async () => {
  const first = await moby();
  await first.service.stop('the test goes on');
  writeFileSync(first.here.backendLock, '{"action": "Creating snapshot \\"x\\"", "pid": 4194300, "started": "then"}');
  const partial = join(first.here.snapshots, '.00000000-0000-4000-8000-000000000000.partial');
  mkdirSync(partial, { recursive: true });
  const service = await startService({ home: first.home });
  expect(await service.converged()).toMatchObject({
    backendState: 'STARTED',
    notices: [
      'The last service ended in the middle of this: Creating snapshot "x"; what it had begun is removed. The backend restarts if its desired state is started.',
    ],
  });
  expect(existsSync(first.here.backendLock)).toBe(false);
  expect(existsSync(partial)).toBe(false);
});

test('locked settings keep their current values', async () => {
  const first = await moby();
  expect(await create(first, 'one')).toEqual(CREATED);
  await first.converged();
  await first.service.stop('the test goes on');
  const locked = join(first.home, 'locked.json');
  writeFileSync(locked, JSON.stringify({ version: 19, virtualMachine: { memoryInGB: 8 } }));
  const service = await startService({ home: first.home, policies: { locked } });
  await service.converged();
  expect(await restore(service, 'one')).toEqual(RESTORED);
  expect((await service.client.settings()).settings).toMatchObject({ virtualMachine: { memoryInGB: 8 } });
});

test('a snapshot of another driver, without a manifest, or with a changed one is refused', async () => {
  const service = await moby();
  expect(await create(service, 'one')).toEqual(CREATED);
  await service.converged();
  const [id = ''] = readdirSync(service.here.snapshots);
  const file = join(service.here.snapshots, id, 'manifest.json');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"simulated"', '"host"'));
  expect((await restore(service, 'one')).text).toContain('the snapshot is damaged: manifest.json is not what it was');
  const changed = createHash('sha256').update(readFileSync(file)).digest('hex');
  writeFileSync(join(service.here.snapshots, id, 'rdctl-complete.txt'), `sha256:${changed}`);
  await sealAgain(join(service.here.snapshots, id));
  expect((await restore(service, 'one')).text).toBe(
    'failed to restore snapshot "one": it was made with the driver host, and this service uses simulated',
  );
  rmSync(file);
  expect((await restore(service, 'one')).text).toContain('was not made by this product');
  expect(await service.client.status()).toMatchObject({ converged: true });
});

test('directories without a snapshot are skipped', async () => {
  const service = await moby();
  expect(await create(service, 'one')).toEqual(CREATED);
  for (const [index, files] of [{}, { 'complete.txt': '' }, { 'complete.txt': '', 'metadata.json': '{' }].entries()) {
    const directory = join(service.here.snapshots, `00000000-0000-4000-8000-00000000000${index}`);
    mkdirSync(directory);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  }
  expect(JSON.parse((await call(service, 'GET', '/v1/snapshots')).text)).toHaveLength(1);
  expect(await call(service, 'DELETE', '/v1/snapshots?name=one')).toMatchObject({ status: 200 });
  rmSync(service.here.snapshots, { recursive: true });
  writeFileSync(service.here.snapshots, 'a file');
  expect((await call(service, 'GET', '/v1/snapshots')).status).toBe(500);
});

test('k8s_reset deletes the data of the cluster, or everything', async () => {
  const service = await moby({ settings: { kubernetes: { enabled: true }, containerEngine: { name: 'moby' } } });
  const edit = (change: (model: Model) => void) => {
    const model = modelOf(service);
    change(model);
    writeFileSync(join(service.here.state, 'drivers', 'simulated', 'machine.json'), JSON.stringify(model));
  };
  edit(({ cluster, engines }) => {
    if (cluster.state !== 'absent') cluster.workloads.push('default/mine');
    engines.moby.images.push('mine');
  });
  expect(await call(service, 'PUT', '/v1/k8s_reset', { mode: 'fast' })).toEqual({
    status: 200,
    text: 'Rancher Desktop fast reset successful',
  });
  expect(await service.client.status()).toMatchObject({ converged: true, backendState: 'STARTED' });
  expect(modelOf(service)).toMatchObject({
    cluster: { workloads: ['kube-system/coredns'] },
    engines: { moby: { images: ['mine'] } },
  });
  expect(await call(service, 'PUT', '/v1/k8s_reset', { mode: 'wipe' })).toEqual({
    status: 200,
    text: 'Rancher Desktop wipe reset successful',
  });
  expect(modelOf(service)).toMatchObject({ engines: { moby: { images: [] } } });
  expect(await call(service, 'PUT', '/v1/k8s_reset', { mode: 'slow' })).toMatchObject({ status: 400 });

  await service.client.putSettings({ version: 19, kubernetes: { enabled: false } });
  await service.converged();
  const { steps } = (await service.client.status()).counters;
  expect(await call(service, 'PUT', '/v1/k8s_reset', {})).toMatchObject({ status: 200 });
  const after = await service.client.status();
  expect(after.backendState).toBe('DISABLED');
  expect(after.counters.steps).toBeGreaterThan(steps);
  // When it should be off, it stays off.
  await service.client.setBackendState('STOPPED');
  await service.converged();
  expect(await call(service, 'PUT', '/v1/k8s_reset', { mode: 'wipe' })).toMatchObject({ status: 200 });
  expect(await service.client.status()).toMatchObject({ power: 'stopped', backendState: 'STOPPED' });
});

test('k8s_reset reports when it did nothing, and when the backend does not start', async () => {
  const service = await startService({
    settings: { containerEngine: { name: 'moby' } },
    env: { RDCTL_SIMULATED_FAULTS: 'moby.start:hang' },
  });
  await expect.poll(async () => (await service.client.backendState()).vmState).toBe('STARTING');
  expect(await call(service, 'PUT', '/v1/k8s_reset', {})).toMatchObject({
    status: 503,
    text: expect.stringMatching(/^Rancher Desktop is busy \(STARTING\); nothing was reset/),
  });
});
