import { expect, test } from 'vitest';
import { unlessHalted } from '../../src/drivers/machines/qemu/halts.ts';
import type { Monitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { RdError } from '../../src/errors.ts';
import type { Clock } from '../../src/os/clock.ts';

const never = new AbortController().signal;

/** A QEMU with this status, which changes after it is told to continue. */
function machine(status: string, cont: string) {
  const told: string[] = [];
  const world = { status, told };
  const monitor: Monitor = {
    status: async () => world.status,
    async use(work) {
      return work({
        async execute(command) {
          told.push(command);
          if (command === 'cont') world.status = cont;
          return {};
        },
        close: () => undefined,
      });
    },
  };
  let time = 0;
  const clock: Clock = {
    now: () => time,
    async sleep(ms) {
      time += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
  return { world, told, parts: { monitor, clock }, time: () => time };
}

/** Ends only by the signal, like a program in a guest that is halted. */
const waiting = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new RdError('ERR_CANCELLED', 'given up')), { once: true });
  });

test('work in a halted guest that cannot continue is given up, with the reason', async () => {
  const { parts, told, time } = machine('io-error', 'io-error');
  await expect(unlessHalted(parts, never, waiting)).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringContaining('the disk of this host is full'),
  });
  expect(told).toEqual(['cont']);
  expect(time()).toBeLessThan(5_000);
});

test('work in a guest that continues when told to is waited for', async () => {
  const { parts, told, world } = machine('io-error', 'running');
  const work = async () => {
    while (world.status !== 'running') await parts.clock.sleep(100);
    return 'done';
  };
  expect(await unlessHalted(parts, never, work)).toBe('done');
  expect(told).toEqual(['cont']);
});

test('a guest that someone halted stays halted, and errors of the work are passed on', async () => {
  const { parts, told } = machine('paused', 'running');
  const failure = new RdError('ERR_DRIVER_FAILED', 'of its own');
  const work = async () => {
    await parts.clock.sleep(5_000);
    await parts.clock.sleep(5_000);
    throw failure;
  };
  await expect(unlessHalted(parts, never, work)).rejects.toBe(failure);
  expect(told).toEqual([]);
});
