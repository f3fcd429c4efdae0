import { expect, test } from 'vitest';
import { createGuestClock } from '../../src/drivers/machines/qemu/guest.ts';

const signal = new AbortController().signal;
const START_MS = Date.parse('2026-01-01T00:00:00Z');

/** A guest whose clock is `behindS` behind, and whose programs run `latencyMs` after they were requested, and take as long to report. */
function scene({ behindS, latencyMs }: { behindS: number; latencyMs: number }) {
  /** `sleptMs`: time that passed while the host slept. */
  const world = { now: START_MS, sleptMs: 0, behindS };
  const seconds = () => Math.floor(world.now / 1000) - world.behindS;
  const clock = createGuestClock(
    {
      async run(argv) {
        world.now += latencyMs;
        const shift = argv.at(-1) ?? '';
        if (argv.includes('sh')) world.behindS -= Number(shift);
        const stdout = `${seconds()}\n`;
        world.now += latencyMs;
        return { exitCode: 0, stdout, stderr: '' };
      },
    },
    { now: () => world.now - world.sleptMs, sleep: async () => undefined },
    () => world.now,
  );
  return { world, clock };
}

test.each([
  { behindS: 3600, latencyMs: 10 },
  { behindS: -3600, latencyMs: 10 },
  // A computer under load.
  { behindS: 3600, latencyMs: 8_000 },
])(
  'a clock that is $behindS s behind is right after it was set, with programs that take 2 × $latencyMs ms',
  async (start) => {
    const { world, clock } = scene(start);
    expect(await clock.isOff(signal)).toBe(true);
    await clock.set(signal);
    expect(Math.abs(world.behindS)).toBeLessThanOrEqual(1);
    expect(await clock.isOff(signal)).toBe(false);
  },
);

test('a clock that nobody has looked at is read before it is set', async () => {
  const { world, clock } = scene({ behindS: 100, latencyMs: 10 });
  await clock.set(signal);
  expect(Math.abs(world.behindS)).toBeLessThanOrEqual(1);
});

test('a right clock is checked four times an hour', async () => {
  const { world, clock } = scene({ behindS: 0, latencyMs: 10 });
  expect(await clock.isOff(signal)).toBe(false);
  world.behindS = 100;
  world.now += 899_000;
  expect(await clock.isOff(signal)).toBe(false);
  world.now += 1_000;
  expect(await clock.isOff(signal)).toBe(true);
});

test('after the host has slept, the clock is checked at once', async () => {
  const { world, clock } = scene({ behindS: 0, latencyMs: 10 });
  expect(await clock.isOff(signal)).toBe(false);
  world.now += 30_000;
  world.sleptMs = 20_000;
  world.behindS = 20;
  expect(await clock.isOff(signal)).toBe(true);
  await clock.set(signal);
  expect(await clock.isOff(signal)).toBe(false);
});
