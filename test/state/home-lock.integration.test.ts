import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { processTable, terminate } from '../../src/os/process-table.ts';
import type { LockEnvironment } from '../../src/state/home-lock.ts';
import { lockApply, lockHolder, lockHome } from '../../src/state/home-lock.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A world in which the process with this pid asks, and `alive` says who lives. Time passes only while something sleeps. */
function world(pid: number, alive: Set<number>): LockEnvironment {
  let now = Date.parse('2030-01-01T00:00:00Z');
  return {
    processes: {
      self: async () => ({ pid, started: `s${pid}` }),
      isAlive: async ({ pid: id, started }) => alive.has(id) && (started === undefined || started === `s${id}`),
    },
    now: () => now,
    async sleep(ms) {
      now += ms;
      // A longer sleep ends later, or attempts that back off for each other would stay in step.
      for (let turn = 0; turn < ms; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('the second service names the first by pid and port', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const alive = new Set([1, 2]);
  const first = await lockHome(directory, '/home', world(1, alive));
  await expect(lockHome(directory, '/home', world(2, alive))).rejects.toMatchObject({
    code: 'ERR_ALREADY_RUNNING',
    message: 'a service for /home is already running (pid 1)',
  });
  await first.update({ port: 6107 });
  await expect(lockHome(directory, '/home', world(2, alive))).rejects.toThrow('(pid 1, port 6107)');
  await first.release();
  const second = await lockHome(directory, '/home', world(2, alive));
  await second.release();
  expect(readdirSync(directory)).toEqual([]);
});

test('a half-written file of a killed process is removed, that of a living one stays', async () => {
  const directory = join(temporaryDirectory(), 'apply.lock');
  mkdirSync(directory);
  const [dead, living] = [3, 2].map((pid) => `${pid}-${'0'.repeat(16)}.json.01234567`);
  for (const name of [dead, living, 'notes.txt']) writeFileSync(join(directory, name ?? ''), '{');
  const lock = await lockApply(directory, { timeoutMs: 0 }, world(1, new Set([1, 2])));
  await lock.release();
  expect(readdirSync(directory).sort()).toEqual([living, 'notes.txt']);
});

test('nothing is written after the release, not even pending updates', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const lock = await lockHome(directory, '/home', world(1, new Set([1])));
  const updates = [lock.update({ port: 1 }), lock.update({ announced: true }), lock.update({ ending: true })];
  await lock.release();
  expect(readdirSync(directory)).toEqual([]);
  await Promise.all(updates);
  expect(readdirSync(directory)).toEqual([]);
});

test('the lock has the latest facts', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const around = world(1, new Set([1]));
  const lock = await lockHome(directory, '/home', around);
  await Promise.all([lock.update({ port: 1 }), lock.update({ announced: true }), lock.update({ ending: true })]);
  const told = await lockHolder(directory, around.processes);
  expect(told).toMatchObject({ alive: true, port: 1, announced: true, ending: true });
  await lock.release();
});

test('whoever leaves something running releases the lock, and says so until the next one has it', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const around = world(1, new Set([1, 2]));
  const first = await lockHome(directory, '/home', around);
  await first.update({ port: 6107 });
  await first.leave();
  await first.release();
  expect(await lockHolder(directory, around.processes)).toMatchObject({ pid: 1, alive: false, left: true });
  const second = await lockHome(directory, '/home', world(2, new Set([1, 2])));
  expect(await lockHolder(directory, around.processes)).toMatchObject({ pid: 2 });
  await second.release();
  expect(readdirSync(directory)).toEqual([]);
});

test('the lock of a dead process, also of one whose pid was reused, is taken over', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  mkdirSync(directory);
  const entry = { since: '2029-01-01T00:00:00.000Z', held: true };
  writeFileSync(join(directory, '7-dead.json'), JSON.stringify({ pid: 7, started: 's7', ...entry }));
  writeFileSync(join(directory, '2-reused.json'), JSON.stringify({ pid: 2, started: 'long ago', ...entry }));
  const lock = await lockHome(directory, '/home', world(1, new Set([1, 2])));
  expect(readdirSync(directory)).toHaveLength(1);
  await lock.release();
});

test('of many concurrent attempts exactly one gets the lock', async () => {
  for (let round = 0; round < 20; round += 1) {
    const directory = join(temporaryDirectory(), 'service.lock');
    const pids = [1, 2, 3, 4, 5];
    const alive = new Set(pids);
    const outcomes = await Promise.allSettled(pids.map((pid) => lockHome(directory, '/home', world(pid, alive))));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  }
});

test('one process cannot hold the lock twice', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const lock = await lockHome(directory, '/home');
  await expect(lockHome(directory, '/home')).rejects.toThrow(`pid ${process.pid}`);
  await lock.release();
  await lock.release();
});

test('an apply waits for the one before it, and names it on timeout', async () => {
  const directory = join(temporaryDirectory(), 'apply.lock');
  const alive = new Set([1, 2]);
  const first = await lockApply(directory, { timeoutMs: 0 }, world(1, alive));
  const waited: number[] = [];
  const onWait = ({ pid }: { pid: number }) => waited.push(pid);
  await expect(lockApply(directory, { timeoutMs: 5000, onWait }, world(2, alive))).rejects.toMatchObject({
    code: 'ERR_DEADLINE',
    message: 'another apply (pid 1, since 2030-01-01T00:00:00.000Z) did not finish in time',
  });
  expect(waited).toEqual([1]);

  const pending = lockApply(directory, { timeoutMs: 600_000, onWait: () => void first.release() }, world(2, alive));
  const second = await pending;
  await second.release();
});

test('the wait ends when the caller aborts', async () => {
  const directory = join(temporaryDirectory(), 'apply.lock');
  const first = await lockApply(directory, { timeoutMs: 0 });
  const signal = AbortSignal.abort();
  await expect(lockApply(directory, { timeoutMs: 60_000, signal })).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await first.release();
});

test('the holder of a lock can be read without taking it', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  expect(await lockHolder(directory)).toBeUndefined();
  const alive = new Set([1]);
  const { processes } = world(1, alive);
  const lock = await lockHome(directory, '/home', world(1, alive));
  const startedAt = '2030-01-01T00:00:00.000Z';
  expect(await lockHolder(directory, processes)).toEqual({ pid: 1, started: 's1', startedAt, alive: true });
  await lock.update({ port: 6107 });
  writeFileSync(join(directory, 'x.json'), '{}');
  writeFileSync(join(directory, '2-waiting.json'), JSON.stringify({ pid: 2, started: 's2', since: startedAt }));
  expect(await lockHolder(directory, processes)).toEqual({ pid: 1, started: 's1', startedAt, port: 6107, alive: true });
  await lock.update({ announced: true });
  const known = { pid: 1, started: 's1', startedAt, port: 6107, announced: true };
  expect(await lockHolder(directory, processes)).toEqual({ ...known, alive: true });
  alive.clear();
  expect(await lockHolder(directory, processes)).toEqual({ ...known, alive: false });
  expect(readdirSync(directory)).toHaveLength(3);
  await lock.release();
  expect(await lockHolder(directory, processes)).toBeUndefined();
});

test.runIf(process.platform === 'linux')('a zombie process is not alive', async () => {
  // The shell becomes a program that never waits for its child, which lives until its input ends.
  const script = 'exec 3<&0; (read line <&3) & echo $!; exec sleep 60';
  const parent = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = await once(parent.stdout, 'data');
  const pid = Number(String(line));
  await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n');
  expect(await processTable.isAlive({ pid })).toBe(true);
  parent.stdin.end();
  await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /);
  expect(await processTable.isAlive({ pid })).toBe(false);
  expect(await terminate({ pid, started: 'another' })).toBe(false);
});

test('a foreign file in the lock is an error with its path, not ignored', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  mkdirSync(directory);
  writeFileSync(join(directory, 'x.json'), '{}');
  await expect(lockHome(directory, '/home')).rejects.toThrow(join(directory, 'x.json'));
});

test('processes are distinguished by start time, not by pid alone', async () => {
  const self = await processTable.self();
  expect(self.pid).toBe(process.pid);
  expect(await processTable.isAlive(self)).toBe(true);
  expect(await processTable.isAlive({ pid: 2 ** 22 + 1 })).toBe(false);
  if (self.started !== undefined) expect(await processTable.isAlive({ ...self, started: 'another' })).toBe(false);
});

test('the file of a lock is readable by its user alone and contains no secret', async () => {
  const directory = join(temporaryDirectory(), 'service.lock');
  const lock = await lockHome(directory, '/home', world(1, new Set([1])));
  const [name = ''] = readdirSync(directory);
  expect(JSON.parse(readFileSync(join(directory, name), 'utf8'))).toEqual({
    pid: 1,
    started: 's1',
    since: '2030-01-01T00:00:00.000Z',
    at: { path: directory, id: expect.stringMatching(/^\d+:\d+$/) },
    held: true,
  });
  await lock.release();
});

test('files of a copied lock do not count here, and those of a moved one say where it was', async () => {
  const parent = temporaryDirectory();
  const lockIn = (name: string) => join(parent, name, 'service.lock');
  const [directory, copy, moved] = [lockIn('lock'), lockIn('copy'), lockIn('moved')];
  const around = world(1, new Set([1, 2]));
  await lockHome(directory, '/home', around);
  cpSync(dirname(directory), dirname(copy), { recursive: true });
  expect(await lockHolder(copy, around.processes)).toBeUndefined();
  const second = await lockHome(copy, '/copy', world(2, new Set([1, 2])));
  await second.release();
  expect(await lockHolder(directory, around.processes)).toMatchObject({ pid: 1, alive: true });

  renameSync(dirname(directory), dirname(moved));
  await expect(lockHome(moved, '/moved', world(2, new Set([1, 2])))).rejects.toMatchObject({ code: 'ERR_HOME_MOVED' });
  expect(readdirSync(moved)).toHaveLength(1);
  const dead = world(2, new Set([2]));
  expect(await lockHolder(moved, dead.processes)).toMatchObject({ pid: 1, alive: false, movedFrom: directory });
  // Across file systems it is a new directory, and the old one is gone all the same.
  cpSync(dirname(moved), dirname(directory), { recursive: true });
  renameSync(dirname(directory), join(parent, 'other'));
  await expect(lockHolder(join(parent, 'other', 'service.lock'), around.processes)).rejects.toMatchObject({
    code: 'ERR_HOME_MOVED',
  });
});
