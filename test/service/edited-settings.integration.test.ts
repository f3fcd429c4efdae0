import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject } from '../../src/json.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { startService, type TestService } from '../helpers/service.ts';

// settings.json that something else wrote while no service ran: an editor, or the other application's `snapshot restore`.

async function entries({ client }: TestService): Promise<HistoryEntry[]> {
  const { body } = await client.request({ method: 'GET', path: '/v2/history' });
  return JSON.parse(body.toString()).entries;
}

const edits = async (running: TestService) => (await entries(running)).filter(({ by }) => by.how === 'edit');
const notices = async ({ client }: TestService) =>
  (await client.status()).notices.filter((notice) => notice.includes('was changed while no service ran'));

function edit({ here }: TestService, change: JsonObject): void {
  const settings = JSON.parse(readFileSync(here.settingsFile, 'utf8'));
  writeFileSync(here.settingsFile, JSON.stringify(merged(settings, change)));
}

function merged(onto: JsonObject, change: JsonObject): JsonObject {
  const parts = Object.entries(change).map(([name, value]) => {
    const old = onto[name];
    return [name, isObject(value) && isObject(old) ? merged(old, value) : value];
  });
  return { ...onto, ...Object.fromEntries(parts) };
}

/** A home whose service has written settings once, and has ended. */
async function stopped(): Promise<TestService> {
  const running = await startService({ power: 'stopped' });
  await running.client.putSettings({ version: 19, images: { namespace: 'ours' } });
  await running.service.stop('the test goes on');
  return running;
}

test('is in force at the next start, once in the history with what was there before, and in a notice', async () => {
  const first = await stopped();
  edit(first, {
    images: { namespace: 'theirs' },
    experimental: { virtualMachine: { proxy: { password: 'hunter-two' } } },
  });
  const next = await startService({ home: first.home });
  expect((await next.client.settings()).settings).toMatchObject({ images: { namespace: 'theirs' } });
  const [entry, ...others] = await edits(next);
  expect(others).toEqual([]);
  expect(entry).toMatchObject({
    by: { how: 'edit' },
    changes: expect.arrayContaining([
      { path: 'images.namespace', before: 'ours', after: 'theirs' },
      { path: 'experimental.virtualMachine.proxy.password', before: '', after: { sensitive: true } },
    ]),
  });
  await next.converged();
  await expect.poll(async () => (await edits(next))[0]?.outcome?.result).toBe('converged');
  expect(await notices(next)).toEqual([expect.stringContaining('"images.namespace"')]);
  await next.service.stop('once more');
  const last = await startService({ home: first.home });
  expect(await edits(last)).toHaveLength(1);
  expect(await notices(last)).toEqual([]);
});

test('comes before what the start itself changes', async () => {
  const first = await stopped();
  edit(first, { images: { namespace: 'theirs' } });
  const next = await startService({ home: first.home, settings: { images: { showAll: false } } });
  expect((await entries(next)).slice(-2)).toMatchObject([
    { by: { how: 'edit' }, changes: [{ path: 'images.namespace', before: 'ours', after: 'theirs' }] },
    { by: { how: 'start' }, changes: [{ path: 'images.showAll', before: true, after: false }] },
  ]);
  const { generation } = await next.client.status();
  expect((await entries(next)).at(-1)?.generation).toBe(generation);
});

describe('is no edit:', () => {
  test('what the service wrote, whoever asked, in another layout', async () => {
    const policies = { locked: `${(await stopped()).home}/locked.json` };
    writeFileSync(policies.locked, '{"version":19,"images":{"showAll":false}}');
    const first = await startService({ power: 'stopped', policies, settings: { kubernetes: { enabled: false } } });
    await first.client.putSettings({ version: 19, images: { namespace: 'ours' } });
    await first.service.stop('the test goes on');
    edit(first, {});
    const next = await startService({ home: first.home, policies });
    expect(await edits(next)).toEqual([]);
  });

  test('what an earlier release wrote, which kept no record', async () => {
    const first = await stopped();
    const record = first.here.writtenSettingsFile;
    const old = readFileSync(record);
    rmSync(record);
    edit(first, { images: { namespace: 'theirs' } });
    const next = await startService({ home: first.home });
    expect(await edits(next)).toEqual([]);
    await next.client.putSettings({ version: 19, images: { namespace: 'newer' } });
    await next.service.stop('the test goes on');
    // That release again, and after it this one.
    writeFileSync(record, old);
    const last = await startService({ home: first.home });
    expect(await edits(last)).toEqual([]);
    await last.service.stop('the test goes on');
    edit(last, { images: { namespace: 'theirs' } });
    expect(await edits(await startService({ home: first.home }))).toHaveLength(1);
  });
});

test('a copy from before the last change that comes into force again is one', async () => {
  const first = await stopped();
  const { settingsFile, previousSettingsFile } = first.here;
  renameSync(previousSettingsFile, settingsFile);
  const [entry] = await edits(await startService({ home: first.home }));
  expect(entry?.changes).toEqual([{ path: 'images.namespace', before: 'ours', after: 'default' }]);
});
