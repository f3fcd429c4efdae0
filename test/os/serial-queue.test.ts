import { expect, test } from 'vitest';
import { SerialQueue } from '../../src/os/serial-queue.ts';

test('work runs in the order of the calls, one at a time', async () => {
  const queue = new SerialQueue();
  const seen: string[] = [];
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const first = queue.run(async () => {
    seen.push('first begins');
    await gate;
    seen.push('first ends');
    return 1;
  });
  const second = queue.run(() => {
    seen.push('second');
    return 2;
  });
  await Promise.resolve();
  expect(seen).toEqual(['first begins']);
  open();
  expect(await Promise.all([first, second])).toEqual([1, 2]);
  expect(seen).toEqual(['first begins', 'first ends', 'second']);
});

test('a failure reaches its caller, and what comes after it runs', async () => {
  const queue = new SerialQueue();
  const failing = queue.run(() => {
    throw new Error('no');
  });
  const next = queue.run(() => 'done');
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('done');
  await queue.idle();
});
