import { describe, expect, test } from 'vitest';
import { type Idleness, idleness } from '../../src/drivers/machines/qemu/pause/idleness.ts';

const MINUTE = 60_000;
const CHECK = 7_000;
const LIMIT = 10 * MINUTE;

/** Checks until `to` with this use of the processor; 1 is a whole core. @returns the idle time at the end. */
function look(idle: Idleness, from: { at: number; cpuMs: number }, to: number, share: number, connected = false) {
  const now = { ...from };
  let idleMs = -1;
  while (now.at < to) {
    now.at += CHECK;
    now.cpuMs += share * CHECK;
    idleMs = idle.add({ ...now, connected }, LIMIT);
  }
  return { ...now, idleMs };
}

describe('a machine', () => {
  const start = { at: 0, cpuMs: 5_000 };

  test('without connections and work is idle from the first look on', () => {
    const idle = idleness();
    expect(idle.add({ ...start, connected: false }, LIMIT)).toBe(0);
    const { at, idleMs } = look(idle, start, LIMIT, 0.06);
    expect(idleMs).toBe(at);
  });

  test('with a connection is in use', () => {
    const idle = idleness();
    expect(look(idle, start, LIMIT, 0, true).idleMs).toBe(0);
  });

  test('is idle again from the last connection on', () => {
    const idle = idleness();
    const used = look(idle, start, 5 * MINUTE, 0.01, true);
    const { at, idleMs } = look(idle, used, 7 * MINUTE, 0.01);
    expect(idleMs).toBe(at - used.at);
  });

  test('that works without a connection is in use', () => {
    const idle = idleness();
    look(idle, start, MINUTE, 0.02);
    expect(look(idle, { at: MINUTE, cpuMs: 9_000 }, LIMIT, 0.15).idleMs).toBe(0);
  });

  test('that began to work a moment ago is in use, although it was idle for most of the minute', () => {
    const idle = idleness();
    const before = look(idle, start, LIMIT - CHECK, 0.03);
    expect(idle.add({ at: before.at + CHECK, cpuMs: before.cpuMs + CHECK, connected: false }, LIMIT)).toBe(0);
  });

  test('that works for a moment each minute stays idle: an average below a tenth of a core is housekeeping', () => {
    const idle = idleness();
    let now = { ...start, idleMs: 0 };
    for (let minute = 1; minute <= 10; minute++) {
      now = look(idle, now, minute * MINUTE - CHECK, 0.01);
      now = look(idle, now, minute * MINUTE, 0.4);
    }
    expect(now.idleMs).toBeGreaterThanOrEqual(LIMIT - CHECK);
  });

  test('whose QEMU is new starts over with its processor time', () => {
    const idle = idleness();
    const before = look(idle, { at: 0, cpuMs: 500_000 }, 2 * MINUTE, 0.01);
    const { idleMs } = look(idle, { at: before.at, cpuMs: 0 }, 4 * MINUTE, 0.01);
    expect(idleMs).toBeGreaterThan(3 * MINUTE);
  });

  test('in which the service worked is idle from then on', () => {
    const idle = idleness();
    const before = look(idle, start, 5 * MINUTE, 0.01);
    idle.used(before.at + 1_000);
    expect(idle.add({ at: before.at + CHECK, cpuMs: before.cpuMs, connected: false }, LIMIT)).toBe(CHECK - 1_000);
  });

  test('with a limit below a minute is measured over that time', () => {
    const idle = idleness();
    const limit = 2 * CHECK;
    idle.add({ at: 0, cpuMs: 0, connected: false }, limit);
    // Busy at first, and quiet for longer than the limit.
    const times = [1, 2, 3, 4, 5].map((count) =>
      idle.add({ at: count * CHECK, cpuMs: CHECK, connected: false }, limit),
    );
    expect(times).toEqual([0, 0, CHECK, 2 * CHECK, 3 * CHECK]);
  });
});
