import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { steadyClock } from '../../src/os/clock.ts';
import { endGroupAfter, readProcess } from '../../src/os/process-table.ts';
import { rdctl } from '../helpers/cli.ts';

const NEVER = new AbortController().signal;

/** A shell that has started a program and exits when its input ends; it leads a group or stays in ours. */
async function parent(leads: boolean) {
  const script = 'sleep 600 >/dev/null 2>&1 & echo $!; read line';
  const child = spawn('sh', ['-c', script], { detached: leads, stdio: ['pipe', 'pipe', 'ignore'] });
  const [line] = await once(child.stdout, 'data');
  const left = Number(String(line));
  onTestFinished(() => {
    try {
      process.kill(left, 'SIGKILL');
    } catch {
      // It has exited, as expected.
    }
  });
  return { pid: child.pid ?? 0, left, end: () => child.stdin.end() };
}

test('processes that a group leader leaves behind are ended after it', async () => {
  const { pid, left, end } = await parent(true);
  const waiting = endGroupAfter(pid, steadyClock, NEVER);
  expect(await readProcess(left)).toBeDefined();
  end();
  await waiting;
  while (await readProcess(left)) await steadyClock.sleep(5);
});

test('a pid that leads no group, or does not exist, ends nothing', async () => {
  const { pid, left, end } = await parent(false);
  await endGroupAfter(pid, steadyClock, NEVER);
  expect(await readProcess(left)).toBeDefined();
  end();
  await expect(endGroupAfter(2 ** 22 + 1, steadyClock, NEVER)).resolves.toBeUndefined();
});

test('the wait can be interrupted', async () => {
  const { pid, left } = await parent(true);
  const controller = new AbortController();
  const waiting = endGroupAfter(pid, steadyClock, controller.signal);
  controller.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(await readProcess(left)).toBeDefined();
  process.kill(-pid, 'SIGKILL');
});

test('as a command', async () => {
  const { pid, left, end } = await parent(true);
  end();
  expect(await rdctl(['internal', 'process', 'wait-kill', `--pid=${pid}`])).toEqual({ exit: 0, out: '', err: '' });
  while (await readProcess(left)) await steadyClock.sleep(5);
  expect(await rdctl(['internal', 'process', 'wait-kill', '--pid', '0'])).toMatchObject({ exit: 0 });
});
