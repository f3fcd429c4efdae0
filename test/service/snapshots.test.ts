import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import { startService, type TestService } from '../helpers/service.ts';

/** What the simulated machine holds. */
function modelOf({ here }: TestService): Model {
  const file = join(here.state, 'drivers', 'simulated', 'machine.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : emptyModel();
}

/** A client of the engine makes an image. */
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

test('a snapshot brings back settings and state, and what came later is gone', async () => {
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
