import { beforeEach, describe, expect, test } from 'vitest';
import type { Door } from '../../src/drivers/machines/qemu/pause/connections.ts';
import { guestPauses, type Pauses } from '../../src/drivers/machines/qemu/pause/pauses.ts';
import { RdError } from '../../src/errors.ts';
import type { Clock } from '../../src/os/clock.ts';

const MINUTE = 60_000;
/** As the loop's checks. */
const CHECK_MS = 5_000;
const SOCKET = '/run/moby-docker.sock';

/** Everything that is ready has run. */
const flushed = () => new Promise((resolve) => setImmediate(resolve));

function manualClock() {
  let time = 0;
  let sleepers: { at: number; end(): void }[] = [];
  const clock: Clock = {
    now: () => time,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const end = () => {
          signal?.removeEventListener('abort', end);
          sleepers = sleepers.filter((each) => each !== sleeper);
          resolve();
        };
        const sleeper = { at: time + ms, end };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', end);
      }),
  };
  async function advance(ms: number): Promise<void> {
    const end = time + ms;
    for (;;) {
      await flushed();
      const [next] = sleepers.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      time = Math.max(time, next.at);
      next.end();
    }
    time = end;
    await flushed();
  }
  return { clock, advance };
}

/** A machine, and what is done to it. `gate` holds a pause or a wake until it is opened. */
function scene() {
  const { clock, advance } = manualClock();
  const world = {
    guest: 'running' as 'running' | 'halted',
    done: [] as string[],
    clients: 0,
    tables: 0,
    cpuMs: 0 as number | undefined,
    bootMs: 20_000,
    fails: '' as '' | 'pause' | 'wake' | 'connections',
    gate: Promise.resolve(),
    warnings: [] as unknown[],
  };
  const pauses = guestPauses({
    async pause() {
      world.done.push('pause');
      if (world.fails === 'pause') throw new RdError('ERR_DRIVER_FAILED', 'it refuses');
      world.guest = 'halted';
      await world.gate;
    },
    async wake() {
      world.done.push('wake');
      await world.gate;
      if (world.fails === 'wake') throw new RdError('ERR_DRIVER_FAILED', 'it refuses');
      world.guest = 'running';
    },
    async wakeAbandoned() {
      world.done.push('adopt');
    },
    async connections() {
      world.tables += 1;
      if (world.fails === 'connections') throw new RdError('ERR_DRIVER_FAILED', 'it cannot be read');
      return new Map<Door, number>([[SOCKET, 1 + world.clients]]);
    },
    own: async () => new Map<Door, number>([[SOCKET, 1]]),
    connectionCounts: async () => `sockets: used ${40 + world.clients}`,
    cpuMs: async () => world.cpuMs,
    emulatedStart: async () => ({
      how: 'boot',
      phases: [
        { name: 'root disk', ms: 60_000 },
        { name: 'boot', ms: world.bootMs },
      ],
    }),
    clock,
    now: () => '2026-11-24T12:00:00.000Z',
    log: (level, message, values) => level === 'warn' && world.warnings.push([message, values?.why]),
  });
  return { world, pauses, clock, advance };
}

/** Observes every five seconds for that long. @returns what the last observation saw. */
async function observed({ pauses, advance }: ReturnType<typeof scene>, ms: number): Promise<string> {
  let seen = '';
  for (let passed = 0; passed < ms; passed += CHECK_MS) {
    seen = await pauses.observe(
      async () => 'awake',
      async () => 'paused',
    );
    await advance(CHECK_MS);
  }
  return seen;
}

describe('a machine that is paused after ten minutes', () => {
  let here: ReturnType<typeof scene>;
  let pauses: Pauses;
  beforeEach(() => {
    here = scene();
    ({ pauses } = here);
    pauses.setLimit(10 * MINUTE);
  });

  test('is paused then, and stays paused while it is only observed', async () => {
    expect(await observed(here, 10 * MINUTE)).toBe('awake');
    expect(here.world.done).toEqual(['adopt']);
    expect(await observed(here, MINUTE)).toBe('paused');
    expect(pauses.current()).toEqual({ since: '2026-11-24T12:00:00.000Z' });
    expect(await observed(here, 5 * MINUTE)).toBe('paused');
    expect(here.world.done).toEqual(['adopt', 'pause']);
  });

  test('is not paused while there is a client, and ten minutes after the last one is', async () => {
    here.world.clients = 1;
    expect(await observed(here, 30 * MINUTE)).toBe('awake');
    here.world.clients = 0;
    await observed(here, 9 * MINUTE);
    expect(here.world.done).toEqual(['adopt']);
    await observed(here, 2 * MINUTE);
    expect(here.world.done).toEqual(['adopt', 'pause']);
  });

  test('is woken by the first connection within a fraction of a second, and is in use from then on', async () => {
    await observed(here, 11 * MINUTE);
    here.world.clients = 1;
    await here.advance(250);
    expect(here.world).toMatchObject({ guest: 'running', done: ['adopt', 'pause', 'wake'] });
    here.world.clients = 0;
    await observed(here, 9 * MINUTE);
    expect(here.world.done).toEqual(['adopt', 'pause', 'wake']);
    expect(await observed(here, 2 * MINUTE)).toBe('paused');
  });

  test('is woken by a connection that was made while it was being halted', async () => {
    let open: () => void = () => undefined;
    here.world.gate = new Promise((resolve) => {
      open = resolve;
    });
    await observed(here, 9 * MINUTE);
    for (let checks = 0; here.world.done.length < 2 && checks < 60; checks++) {
      void pauses.observe(
        async () => undefined,
        async () => undefined,
      );
      await here.advance(CHECK_MS);
    }
    here.world.clients = 1;
    open();
    await here.advance(250);
    expect(here.world).toMatchObject({ guest: 'running', done: ['adopt', 'pause', 'wake'] });
  });

  test('is woken once for all work that needs it, before the work', async () => {
    await observed(here, 11 * MINUTE);
    const states = await Promise.all([1, 2, 3].map(() => pauses.awake(async () => here.world.guest)));
    expect(states).toEqual(['running', 'running', 'running']);
    expect(here.world.done).toEqual(['adopt', 'pause', 'wake']);
    expect(pauses.current()).toBeUndefined();
  });

  test('is not paused during work, however long it takes, nor ten minutes after it', async () => {
    let finish: () => void = () => undefined;
    const work = pauses.awake(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
    );
    await observed(here, 30 * MINUTE);
    finish();
    await work;
    await observed(here, 9 * MINUTE);
    expect(here.world.done).toEqual(['adopt']);
    await observed(here, 2 * MINUTE);
    expect(here.world.done).toEqual(['adopt', 'pause']);
  });

  test('finishes a pause before work that began meanwhile, and wakes for it', async () => {
    let open: () => void = () => undefined;
    here.world.gate = new Promise((resolve) => {
      open = resolve;
    });
    await observed(here, 10 * MINUTE);
    for (let checks = 0; here.world.done.length < 2 && checks < 10; checks++) {
      void pauses.observe(
        async () => undefined,
        async () => undefined,
      );
      await here.advance(CHECK_MS);
    }
    expect(here.world.guest).toBe('halted');
    const state = pauses.awake(async () => here.world.guest);
    await here.advance(1_000);
    open();
    expect(await state).toBe('running');
    expect(here.world.done).toEqual(['adopt', 'pause', 'wake']);
  });

  test('that cannot be woken is left to its next observation, and work in it fails by itself', async () => {
    await observed(here, 11 * MINUTE);
    here.world.fails = 'wake';
    expect(await pauses.awake(async () => here.world.guest)).toBe('halted');
    expect(here.world.warnings).toEqual([['the machine could not be woken', 'it refuses']]);
    expect(await observed(here, CHECK_MS)).toBe('awake');
  });

  test('that cannot be paused runs on, and is tried again at each check', async () => {
    here.world.fails = 'pause';
    expect(await observed(here, 11 * MINUTE)).toBe('awake');
    expect(here.world).toMatchObject({ guest: 'running', warnings: expect.arrayContaining([expect.anything()]) });
    here.world.fails = '';
    await observed(here, 2 * CHECK_MS);
    expect(pauses.current()).toBeDefined();
  });

  test('is woken when nothing shows who connects to it', async () => {
    await observed(here, 11 * MINUTE);
    here.world.fails = 'connections';
    await here.advance(CHECK_MS);
    expect(here.world.guest).toBe('running');
    expect(here.world.warnings).toEqual([
      ['nothing shows who connects to the paused machine; waking it', 'it cannot be read'],
    ]);
  });

  test('has the tables of connections read only when their number has changed, and every five seconds', async () => {
    await observed(here, 11 * MINUTE);
    here.world.tables = 0;
    await here.advance(MINUTE);
    expect(here.world.tables).toBeGreaterThanOrEqual(11);
    expect(here.world.tables).toBeLessThanOrEqual(13);
  });

  test.each([
    ['is in use on a usual computer', 20_000, ['adopt']],
    ['is idle on a slow one', 45_000, ['adopt', 'pause']],
  ])('that uses a sixth of a core %s', async (_, bootMs, done) => {
    Object.assign(here.world, { bootMs });
    for (let passed = 0; passed < 12 * MINUTE && here.world.guest === 'running'; passed += CHECK_MS) {
      here.world.cpuMs = (here.world.cpuMs ?? 0) + CHECK_MS / 6;
      await observed(here, CHECK_MS);
    }
    expect(here.world.done).toEqual(done);
  });

  test('is not paused once it is off', async () => {
    await observed(here, 5 * MINUTE);
    here.world.cpuMs = undefined;
    await observed(here, 20 * MINUTE);
    expect(here.world.done).toEqual(['adopt']);
  });

  test('is woken when the service lets go of it, and not paused again', async () => {
    await observed(here, 11 * MINUTE);
    await pauses.release();
    expect(here.world.guest).toBe('running');
    await here.advance(30 * MINUTE);
    expect(here.world.done).toEqual(['adopt', 'pause', 'wake']);
  });

  test('is not paused any more when the limit becomes zero, and starts to count when it is set again', async () => {
    await observed(here, 9 * MINUTE);
    pauses.setLimit(0);
    await observed(here, 20 * MINUTE);
    pauses.setLimit(10 * MINUTE);
    await observed(here, 9 * MINUTE);
    expect(here.world.done).toEqual(['adopt']);
  });
});

test('a machine without a limit is never paused', async () => {
  const here = scene();
  await observed(here, 24 * 60 * MINUTE);
  expect(here.world.done).toEqual(['adopt']);
});

test('what an earlier process left paused is woken before the first observation and the first work', async () => {
  for (const first of ['observe', 'awake'] as const) {
    const { pauses, world } = scene();
    const order = async () => void world.done.push(first);
    await (first === 'awake' ? pauses.awake(order) : pauses.observe(order, order));
    await pauses.awake(order);
    expect(world.done).toEqual(['adopt', first, first]);
  }
});
