import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { cannotMount } from '../helpers/full-disk.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { safetySnapshotScene, smallSafetySnapshotScene } from './safety-snapshot-scene.ts';

const LOST = 'deletes the workloads and data of the cluster (version 1.33.4)';
const LOWER = { version: 19, kubernetes: { version: '1.32.8' } };

type Scene = Awaited<ReturnType<typeof safetySnapshotScene>>;

function installed({ model }: Scene): string | undefined {
  const { cluster } = model();
  return cluster.state === 'absent' ? undefined : cluster.installedVersion;
}

/** One deed: one entry with its loss, and one snapshot. Returns its name. */
async function expectOneDeed(scene: Scene, how: string): Promise<string> {
  const { entries, names, isClean } = scene;
  await expect.poll(() => installed(scene), { timeout: 30_000 }).toBe('1.32.8');
  await scene.converged();
  const lossy = (await entries()).filter(({ loss }) => loss);
  const snapshot = `before-generation-${lossy[0]?.generation}`;
  expect(lossy).toMatchObject([{ by: { how }, loss: { items: [LOST], snapshot } }]);
  expect(await names()).toEqual([snapshot]);
  expect(isClean()).toBe(true);
  return snapshot;
}

describe('a write without a plan that destroys data', () => {
  test('answers at once; its entry, a rollback and the status name the snapshot that brings the data back', async () => {
    const scene = await safetySnapshotScene({ env: { RDCTL_SIMULATED_LATENCY_MS: '20' } });
    const { run, client, addImage, model, names, converged } = scene;
    addImage('precious');
    const { out, err } = await run('set', '--kubernetes.version', '1.32.8');
    expect(out).toContain('Status: reconfiguring');
    expect(err).toContain(`notice: ${LOST} (comes back only from the snapshot that is made first)\n`);
    expect(await names()).toEqual([]);
    const snapshot = await expectOneDeed(scene, 'set');
    expect((await run('rollback', '--plan')).err).toContain(`to get it back: rdctl snapshot restore ${snapshot}.`);
    expect((await client.status()).notices.join('\n')).toContain(`rdctl snapshot restore ${snapshot}`);
    expect((await run('snapshot', 'restore', snapshot)).exit).toBe(0);
    await converged();
    expect(model()).toMatchObject({ engines: { moby: { images: ['precious'] } } });
    expect(installed(scene)).toBe('1.33.4');
    // Restored data is other data: deleting that is another deed.
    await client.putSettings(LOWER);
    await expect.poll(async () => (await names()).length, { timeout: 30_000 }).toBe(2);
  });

  test('is no loss when it is taken back before the data is gone, and leaves no snapshot', async () => {
    const scene = await safetySnapshotScene({ env: { RDCTL_SIMULATED_LATENCY_MS: '60' } });
    const { client, entries, names, isClean, converged } = scene;
    await client.putSettings(LOWER);
    await expect.poll(async () => (await client.backendState()).locked).toBe(true);
    await client.putSettings({ version: 19, kubernetes: { version: '1.33.4' } });
    await converged();
    expect(installed(scene)).toBe('1.33.4');
    expect((await entries()).filter(({ loss }) => loss)).toEqual([]);
    await expect.poll(names).toEqual([]);
    expect(isClean()).toBe(true);
  });

  test('that ends with the service in the middle of the copy is made once, by the next service', async () => {
    const scene = await safetySnapshotScene({ env: { RDCTL_SIMULATED_LATENCY_MS: '60' } });
    await scene.client.putSettings(LOWER);
    await expect.poll(async () => (await scene.client.backendState()).locked).toBe(true);
    await scene.service.stop('in the middle');
    expect(installed(scene)).toBe('1.33.4');
    await expectOneDeed(await safetySnapshotScene({ home: scene.home, settings: {} }), 'set');
  });

  test('of a backend that is off destroys them at its start, recorded with the change', async () => {
    const scene = await safetySnapshotScene();
    await scene.client.setBackendState('STOPPED');
    await scene.converged();
    await scene.client.putSettings(LOWER);
    expect(await scene.names()).toEqual([]);
    await scene.client.setBackendState('STARTED');
    await expectOneDeed(scene, 'set');
  });

  test('by a start with other settings, or by a file edited by hand, is recorded with the start', async () => {
    const first = await safetySnapshotScene();
    await first.service.stop('to start with other settings');
    const scene = await safetySnapshotScene({ home: first.home, settings: LOWER });
    await expectOneDeed(scene, 'start');
    await scene.service.stop('to edit the file');
    const text = readFileSync(scene.here.settingsFile, 'utf8');
    writeFileSync(scene.here.settingsFile, text.replace('"1.32.8"', '"1.31.2"'));
    const again = await safetySnapshotScene({ home: first.home, settings: {} });
    await expect.poll(() => installed(again), { timeout: 30_000 }).toBe('1.31.2');
    await again.converged();
    expect((await again.entries()).filter(({ loss }) => loss)).toHaveLength(2);
    expect(await again.names()).toHaveLength(2);
  });

  test('by a deployment profile is recorded with it', async () => {
    const first = await safetySnapshotScene();
    await first.service.stop('to lock the version');
    const locked = join(temporaryDirectory(), 'locked.json');
    writeFileSync(locked, JSON.stringify(LOWER));
    await expectOneDeed(await safetySnapshotScene({ home: first.home, settings: {}, policies: { locked } }), 'policy');
  });

  test('whose copy fails is made all the same, and the history and the status say why there is none', async () => {
    const scene = await safetySnapshotScene();
    const programs = temporaryDirectory();
    writeFileSync(join(programs, 'cp'), '#!/bin/sh\necho "cp: cannot read it" >&2\nexit 1\n', { mode: 0o755 });
    vi.stubEnv('PATH', `${programs}:${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    await scene.client.putSettings(LOWER);
    await expect.poll(() => installed(scene), { timeout: 30_000 }).toBe('1.32.8');
    await scene.converged();
    expect((await scene.entries()).filter(({ loss }) => loss)).toMatchObject([
      { by: { how: 'set' }, loss: { items: [LOST], uncovered: expect.stringContaining('cannot read it') } },
    ]);
    expect((await scene.client.status()).notices.join('\n')).toContain('without a snapshot of it');
    expect(await scene.names()).toEqual([]);
    expect(scene.isClean()).toBe(true);
  });
});

test.skipIf(cannotMount())('without room for the snapshot, a warning comes first and nothing is refused', async () => {
  const scene = await smallSafetySnapshotScene();
  const { run } = scene;
  expect((await run('set', '--kubernetes.version', '1.32.8', '--dry-run')).out).toContain(
    'warning: No snapshot is made first: a snapshot of the data that this destroys needs ',
  );
  const { exit, err } = await run('set', '--kubernetes.version', '1.32.8');
  expect({ exit, err }).toMatchObject({ exit: 0, err: expect.stringContaining(`${LOST} (cannot be recovered)`) });
  expect(err).toContain('warning: No snapshot is made first: ');
  expect(err).not.toContain('for the snapshot\n');
  await expect.poll(() => installed(scene), { timeout: 30_000 }).toBe('1.32.8');
  expect((await scene.entries()).at(-1)?.loss).toMatchObject({ uncovered: expect.stringContaining('needs') });
  expect((await run('rollback', '--plan')).err).toContain('no snapshot was made: a snapshot of the data');
});
