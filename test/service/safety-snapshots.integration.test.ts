import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readCatalogue } from '../../src/features/snapshots/catalogue.ts';
import { cannotMount, fillDisk } from '../helpers/full-disk.ts';
import { sealAgain } from '../helpers/sealed-snapshot.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { ALLOW, safetySnapshotScene, smallSafetySnapshotScene } from './safety-snapshot-scene.ts';

describe('an apply that destroys data', () => {
  test('makes a snapshot first, which its entry in the history names, and which brings the data back', async () => {
    const { apply, run, addImage, model, concluded, names, client, isClean, converged } = await safetySnapshotScene();
    addImage('precious');
    const plan = JSON.parse((await run('plan', '-f', '1.32.8.json', '-o', 'json')).out);
    expect(plan.snapshot).toEqual({ bytes: expect.any(Number) });
    expect(plan.blastRadius.at(-1)).toMatchObject({ lost: true, consent: 'kubernetes-reset' });
    const { exit, err } = await apply('1.32.8', ...ALLOW);
    expect(exit).toBe(0);
    const entry = await concluded();
    const snapshot = `before-generation-${entry?.generation}`;
    expect(entry).toMatchObject({
      by: { how: 'apply', consent: { items: ['kubernetes-reset'], by: 'flag' } },
      loss: { items: ['deletes the workloads and data of the cluster (version 1.33.4)'], snapshot },
      outcome: { result: 'converged' },
    });
    expect(err).toContain(`To get the lost data back: rdctl snapshot restore ${snapshot}\n`);
    expect(await names()).toEqual([snapshot]);
    expect(isClean()).toBe(true);
    const shown = await run('history', 'show', String(entry?.generation));
    expect(shown.out).toMatch(/^Consent +kubernetes-reset \(on the command line\)$/m);
    expect(shown.out).toContain(`to get it back: rdctl snapshot restore ${snapshot}\n`);

    const rollback = await run('rollback', '--plan');
    expect(rollback.err).toContain(
      `a rollback does not bring back; to get it back: rdctl snapshot restore ${snapshot}.`,
    );
    expect((await run('snapshot', 'restore', snapshot)).exit).toBe(0);
    await converged();
    expect(model()).toMatchObject({ engines: { moby: { images: ['precious'] } } });
    expect((await client.settings()).settings).toMatchObject({ kubernetes: { version: '1.33.4' } });
    expect((await run('snapshot', 'delete', snapshot)).exit).toBe(0);
    expect((await run('history', 'show', String(entry?.generation))).out).toContain(
      `its snapshot ${snapshot} is deleted`,
    );
  });

  test('that fails names the snapshot', async () => {
    const { apply, names } = await safetySnapshotScene({ env: { RDCTL_SIMULATED_FAULTS: 'cluster.reset:terminal' } });
    const { exit, err } = await apply('1.32.8', ...ALLOW);
    expect(exit).toBe(1);
    expect(err).toContain(`What it may have deleted is in its snapshot: rdctl snapshot restore ${await names()}\n`);
  });

  test('makes none with --no-snapshot, and none without a loss', async () => {
    const { apply, entries, names } = await safetySnapshotScene();
    const { exit, err } = await apply('1.32.8', '--no-snapshot', ...ALLOW);
    expect(exit).toBe(0);
    expect(err).toContain('No snapshot is made first: what is lost cannot be brought back.');
    expect((await entries()).at(-1)?.loss).toMatchObject({ uncovered: 'it was declined' });
    expect((await apply('1.33.4')).exit).toBe(0);
    expect((await entries()).at(-1)?.loss).toBeUndefined();
    expect(await names()).toEqual([]);
  });

  test('covers a rollback, too, and keeps the first and the last snapshot of a row, and says what it deletes', async () => {
    const { apply, run, entries, names } = await safetySnapshotScene();
    for (const version of ['1.32.8', '1.31.2'] as const) expect((await apply(version, ...ALLOW)).exit).toBe(0);
    expect((await apply('1.33.4')).exit).toBe(0);
    expect((await run('rollback', ...ALLOW)).exit).toBe(0);
    expect((await entries()).at(-1)).toMatchObject({ by: { how: 'rollback' }, loss: { snapshot: expect.any(String) } });
    expect((await apply('1.33.4')).exit).toBe(0);
    expect((await apply('1.32.8', ...ALLOW)).exit).toBe(0);
    const made = (await entries()).flatMap(({ loss }) => (loss && 'snapshot' in loss ? [loss.snapshot] : []));
    expect(made).toHaveLength(4);
    // All in a row: the first has what was there before, and the last what was there last.
    await expect.poll(names).toEqual([made[0], made[3]]);
    await expect.poll(async () => (await run('status')).out).toContain(`The snapshot "${made[1]}" is deleted, because`);
  });

  test('is refused when the disk fills up during the copy, and leaves nothing', async () => {
    const { apply, entries, names, isClean, converged } = await safetySnapshotScene();
    const programs = temporaryDirectory();
    const full = '#!/bin/sh\necho "cp: error writing: No space left on device" >&2\nexit 1\n';
    writeFileSync(join(programs, 'cp'), full, { mode: 0o755 });
    vi.stubEnv('PATH', `${programs}:${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { exit, err } = await apply('1.32.8', ...ALLOW);
    expect(exit).toBe(5);
    expect(err).toContain('a snapshot of the data that this destroys needs ');
    await converged();
    expect(await entries()).toEqual([]);
    expect(await names()).toEqual([]);
    expect(isClean()).toBe(true);
  });

  test('leaves a snapshot that outlives its entry in the history until it is a week old', async () => {
    const { apply, entries, names, service, home, here } = await safetySnapshotScene();
    expect((await apply('1.32.8', ...ALLOW)).exit).toBe(0);
    const [name] = await names();
    const [entry] = await entries();
    await service.stop('the test goes on');
    const later = { ...entry, generation: (entry?.generation ?? 0) + 1, loss: undefined };
    const outcome = { result: 'converged', at: new Date().toISOString() };
    const lines = [{ entry: later }, { generation: later.generation, outcome }];
    writeFileSync(here.historyFile, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const again = await safetySnapshotScene({ home });
    await again.service.stop('a week passes');
    expect(await readCatalogue(here.snapshots)).toMatchObject({ snapshots: [{ name }] });
    const { snapshots } = await readCatalogue(here.snapshots);
    const metadata = join(snapshots[0]?.directory ?? '', 'metadata.json');
    const weekAgo = new Date(Date.now() - 8 * 24 * 3_600_000).toISOString();
    const firstRun = join(here.state, 'first-run.json');
    for (const [file, member] of [
      [metadata, 'created'],
      [firstRun, 'at'],
    ] as const) {
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), [member]: weekAgo }));
    }
    // What another home made, or a change made foreign, is left to the user.
    const other = await safetySnapshotScene({ home });
    await other.service.stop('it is one of this home again');
    expect(await readCatalogue(here.snapshots)).toMatchObject({ snapshots: [{ name, foreign: true }] });
    await sealAgain(dirname(metadata));
    const last = await safetySnapshotScene({ home });
    await expect.poll(last.names).toEqual([]);
    await expect
      .poll(async () => (await last.client.status()).notices.join())
      .toContain('because the history no longer has its change');
  });

  test('does nothing when the tool leaves while the snapshot is made', async () => {
    const { client, entries, names, isClean, converged } = await safetySnapshotScene({
      env: { RDCTL_SIMULATED_LATENCY_MS: '60' },
    });
    const before = await entries();
    const request = {
      settings: { version: 19, kubernetes: { version: '1.32.8' } },
      state: 'unmanaged',
      prune: [],
    } as const;
    const plan = await client.plan({ ...request, prune: [] });
    const leaving = new AbortController();
    const applied = client.apply({ ...request, prune: [] }, plan.tag ?? '', { signal: leaving.signal });
    await expect.poll(async () => (await client.backendState()).locked).toBe(true);
    leaving.abort();
    await expect(applied).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    await expect.poll(async () => (await client.backendState()).locked).toBe(false);
    await converged();
    expect(await entries()).toEqual(before);
    expect(await names()).toEqual([]);
    expect(isClean()).toBe(true);
    expect((await client.settings()).settings).toMatchObject({ kubernetes: { version: '1.33.4' } });
  });

  test('is stale when something else was changed meanwhile, and leaves no snapshot', async () => {
    const { client, names, isClean, converged } = await safetySnapshotScene({
      env: { RDCTL_SIMULATED_LATENCY_MS: '60' },
    });
    const request = {
      settings: { version: 19, kubernetes: { version: '1.32.8' } },
      state: 'unmanaged' as const,
      prune: [],
    };
    const plan = await client.plan(request);
    const applied = client.apply(request, plan.tag ?? '');
    const refused = expect(applied).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
    await expect.poll(async () => (await client.backendState()).locked).toBe(true);
    await client.putSettings({ version: 19, images: { namespace: 'other' } });
    await refused;
    await converged();
    expect(await names()).toEqual([]);
    expect(isClean()).toBe(true);
  });

  test('waits for no other snapshot operation, and changes nothing', async () => {
    const { client, entries } = await safetySnapshotScene({ env: { RDCTL_SIMULATED_LATENCY_MS: '60' } });
    const creating = client.request({ method: 'POST', path: '/v1/snapshots', body: JSON.stringify({ name: 'mine' }) });
    await expect.poll(async () => (await client.backendState()).locked).toBe(true);
    const request = {
      settings: { version: 19, kubernetes: { version: '1.32.8' } },
      state: 'unmanaged' as const,
      prune: [],
    };
    const plan = await client.plan(request);
    await expect(client.apply(request, plan.tag ?? '')).rejects.toMatchObject({
      code: 'ERR_SNAPSHOT',
      advice: expect.stringContaining('--no-snapshot'),
    });
    expect(await entries()).toEqual([]);
    expect((await creating).status).toBe(200);
  });
});

describe('a reset', () => {
  test.each(['fast', 'wipe'] as const)('%s is recorded with a snapshot that brings the data back', async (mode) => {
    const { reset, run, addImage, model, concluded, names, isClean, converged } = await safetySnapshotScene();
    addImage('precious');
    expect((await reset({ mode })).body.toString()).toBe(`Rancher Desktop ${mode} reset successful`);
    const entry = await concluded();
    const snapshot = `before-generation-${entry?.generation}`;
    expect(entry).toMatchObject({
      by: { how: 'reset' },
      changes: [],
      loss: { snapshot },
      outcome: { result: 'converged' },
    });
    expect(await names()).toEqual([snapshot]);
    expect(model().engines.moby.images).toEqual(mode === 'wipe' ? [] : ['precious']);
    expect((await run('history')).out).toMatch(/ reset +converged +deletes /);
    const undone = await run('rollback');
    expect(undone.exit).toBe(1);
    expect(undone.err).toContain(`rdctl snapshot restore ${snapshot}`);
    expect((await run('snapshot', 'restore', snapshot)).exit).toBe(0);
    await converged();
    expect(model()).toMatchObject({ engines: { moby: { images: ['precious'] } } });
    expect(isClean()).toBe(true);
  });

  test('and the restore of a snapshot with the settings in force are both in the history', async () => {
    const { run, reset, names, entries, converged } = await safetySnapshotScene();
    expect((await reset({ mode: 'wipe' })).status).toBe(200);
    const [snapshot = ''] = await names();
    expect((await run('snapshot', 'restore', snapshot)).exit).toBe(0);
    await converged();
    await expect
      .poll(async () => (await entries()).at(-1))
      .toMatchObject({
        by: { how: 'restore', snapshot },
        changes: [],
        outcome: { result: 'converged' },
      });
    expect((await run('history')).out).toMatch(
      new RegExp(`restore ${snapshot} +converged +replaces the data by that of ${snapshot}`),
    );
    const undone = await run('rollback');
    expect(undone).toMatchObject({ exit: 1, err: expect.stringContaining('replaced data and changed no settings') });
  });

  test('that fails is recorded as failed, and keeps its snapshot', async () => {
    const { reset, concluded, here, names } = await safetySnapshotScene();
    // In the way of the data that is set aside.
    mkdirSync(join(here.state, 'drivers', 'simulated', 'machine.json.before-restore'));
    expect((await reset({ mode: 'wipe' })).status).toBe(500);
    const entry = await concluded();
    expect(entry?.outcome).toMatchObject({ result: 'failed', reason: expect.stringContaining('is in the way') });
    expect(await names()).toEqual([`before-generation-${entry?.generation}`]);
  });

  test('asks for consent by name, and --no-snapshot makes none', async () => {
    const { run, entries, names } = await safetySnapshotScene();
    const refused = await run('reset', '--vm', '--allow', 'kubernetes-reset');
    expect(refused).toMatchObject({ exit: 1, err: expect.stringContaining('Add --allow machine-reset, or --yes.') });
    expect(await entries()).toEqual([]);
    expect((await run('reset', '--vm', '--allow', 'machine-reset', '--no-snapshot')).exit).toBe(0);
    expect(await entries()).toMatchObject([
      { by: { consent: { items: ['machine-reset'], by: 'flag' } }, loss: { uncovered: 'it was declined' } },
    ]);
    expect(await names()).toEqual([]);
  });

  test('without data to lose is a restart, and no change', async () => {
    const { reset, entries, names } = await safetySnapshotScene({ settings: { kubernetes: { enabled: false } } });
    expect((await reset({ mode: 'fast' })).status).toBe(200);
    expect(await entries()).toEqual([]);
    expect(await names()).toEqual([]);
  });
});

describe.skipIf(cannotMount())('without room for the snapshot', () => {
  test('an apply is refused with both sizes and goes on with --no-snapshot', async () => {
    const { apply, run, entries, isClean } = await smallSafetySnapshotScene();
    expect((await run('plan', '-f', '1.32.8.json')).out).toContain('warning: This plan will be refused: a snapshot of');
    const { exit, err } = await apply('1.32.8', ...ALLOW);
    expect(exit).toBe(5);
    expect(err).toMatch(/a snapshot of the data that this destroys needs 64\.\d MiB, and [\d.]+ [KM]iB is free in /);
    expect(err).toContain('--no-snapshot');
    expect(await entries()).toEqual([]);
    expect(isClean()).toBe(true);
    expect((await apply('1.32.8', '--no-snapshot', ...ALLOW)).exit).toBe(0);
  });

  test('rdctl reset is refused; a client of the compatible interface gets its reset, and the history says that there is none', async () => {
    const { run, reset, entries, client } = await smallSafetySnapshotScene();
    const refused = await run('reset', '--k8s', '--yes');
    expect(refused).toMatchObject({
      exit: 1,
      err: expect.stringContaining('a snapshot of the data that this destroys needs'),
    });
    expect(await entries()).toEqual([]);
    const { status, body } = await reset({ mode: 'fast' });
    expect({ status, text: body.toString() }).toEqual({ status: 200, text: 'Rancher Desktop fast reset successful' });
    expect((await entries()).at(-1)?.loss).toMatchObject({
      uncovered: expect.stringContaining('a snapshot of the data'),
    });
    expect((await client.status()).notices.join()).toContain('Data was reset without a snapshot of it');
  });

  test.each([
    ['fast', 'compatible'],
    ['wipe', 'compatible'],
    ['wipe', 'declined'],
  ] as const)('a %s reset works on a disk without a byte left (%s), twice', async (mode, snapshot) => {
    const { reset, home, model, client, entries, converged } = await smallSafetySnapshotScene();
    const roomAgain = await fillDisk(home);
    const body = { mode, ...(snapshot === 'declined' ? { snapshot: false } : {}) };
    for (let time = 1; time <= 2; time += 1) {
      const { status, body: reply } = await reset(body);
      expect({ status, reply: reply.toString() }).toEqual({ status: 200, reply: expect.stringContaining(mode) });
      await converged();
      expect((await client.backendState()).locked).toBe(false);
      await fillDisk(home);
    }
    expect(model().engines.moby.containers).toEqual(expect.any(Array));
    roomAgain();
    expect((await reset(body)).status).toBe(200);
    expect((await entries()).at(-1)).toMatchObject({ by: { how: 'reset' }, loss: { uncovered: expect.any(String) } });
  });
});
