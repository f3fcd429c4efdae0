import { describe, expect, test } from 'vitest';
import { createBackendRest } from '../../src/reconcile/backend-wait.ts';
import type { LoopStatus } from '../../src/reconcile/contract.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { MACHINE } from '../contract/driver-suite.ts';

type Facts = Partial<Pick<LoopStatus, 'backendState' | 'converged' | 'generation' | 'machine'>>;

/** A loop and a clock that only move on request. */
function stage(facts: Facts, maintenance: { held?: boolean; idle?: boolean } = {}, seen: Facts = {}, blind = false) {
  const listeners = new Set<(status: LoopStatus) => void>();
  let status = { generation: 1, converged: false, backendState: 'STARTED', ...facts } as LoopStatus;
  const sleepers: { ms: number; wake: () => void }[] = [];
  const closing = new AbortController();
  const logged: string[] = [];
  const rest = createBackendRest({
    controllers: {
      status: () => status,
      async look(signal) {
        Object.assign(status, seen);
        return !signal.aborted && !blind;
      },
      onChange(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    maintenance: { heldBy: () => (maintenance.held ? 'held' : undefined), idle: maintenance.idle ?? false },
    desired: () => ({ settings: {} as never, ...DEFAULT_BLOCKS, power: 'started', generation: 1 }),
    log: (_level, message) => void logged.push(message),
    closing: closing.signal,
    clock: {
      now: () => 0,
      sleep: (ms, signal) =>
        new Promise((wake) => {
          sleepers.push({ ms, wake });
          signal?.addEventListener('abort', () => wake());
        }),
    },
  });
  return {
    rest,
    closing,
    logged,
    sleepers,
    listeners,
    become(next: Facts) {
      status = { ...status, ...next };
      for (const listener of listeners) listener(status);
    },
  };
}

/** Whether it is still waited for after everything that was due has happened. */
async function waits(promise: Promise<unknown>): Promise<boolean> {
  const turn = new Promise((resolve) => setImmediate(resolve, 'waits'));
  return (await Promise.race([promise, turn])) === 'waits';
}

const never = new AbortController().signal;

describe('before', () => {
  test.each(['STARTED', 'STOPPED', 'DISABLED', 'ERROR'] as const)('%s needs no wait', async (backendState) => {
    await stage({ backendState }).rest.begin('x', never);
  });

  test.each(['STARTING', 'STOPPING'] as const)('%s is waited for', async (backendState) => {
    const { rest, become, listeners } = stage({ backendState });
    const begun = rest.begin('x', never);
    become({ backendState: 'STOPPING' });
    become({ backendState: 'STARTING' });
    expect(await waits(begun)).toBe(true);
    become({ backendState: 'STARTED' });
    await begun;
    expect(listeners.size).toBe(0);
  });

  test('the wait has a limit, and the refusal says what to do', async () => {
    const { rest, sleepers, listeners } = stage({ backendState: 'STARTING' });
    const begun = rest.begin('Creating snapshot "x"', never);
    expect(sleepers.map(({ ms }) => ms)).toEqual([120_000]);
    sleepers[0]?.wake();
    await expect(begun).rejects.toMatchObject({
      code: 'ERR_SNAPSHOT',
      message:
        'Rancher Desktop state is STARTING. It must be fully running or fully shut down to perform the action: Creating snapshot "x"',
      advice: expect.stringContaining('rdctl status'),
    });
    expect(listeners.size).toBe(0);
  });

  test('canceling ends the wait', async () => {
    const abort = new AbortController();
    const begun = stage({ backendState: 'STARTING' }).rest.begin('x', abort.signal);
    abort.abort();
    await expect(begun).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
});

describe('whether it can be copied live', () => {
  const on: Facts = { converged: true, machine: { state: 'on', spec: MACHINE } };

  test('yes when it is on and converged', async () => {
    expect(await stage(on).rest.isSteady(never)).toBe(true);
  });

  test.each<[string, Facts, { held?: boolean; idle?: boolean }, Facts, boolean]>([
    ['it is off', { ...on, backendState: 'STOPPED', machine: { state: 'off' } }, {}, {}, false],
    ['it has failed', { ...on, converged: false, backendState: 'ERROR' }, {}, {}, false],
    ['it is kept off', on, { held: true }, {}, false],
    ['the service never runs it', on, { idle: true }, {}, false],
    ['a look finds that something is to be done', on, {}, { converged: false }, false],
    ['a look finds it gone', on, {}, { machine: { state: 'off' } }, false],
    ['something else is wished for meanwhile', { ...on, generation: 0 }, {}, {}, false],
    ['it cannot be looked at', on, {}, {}, true],
  ])('no when %s', async (_why, facts, maintenance, seen, blind) => {
    expect(await stage(facts, maintenance, seen, blind).rest.isSteady(never)).toBe(false);
  });

  test('a step is waited for, for a limited time', async () => {
    const { rest, become, sleepers } = stage({ ...on, converged: false });
    const steady = rest.isSteady(never);
    expect(await waits(steady)).toBe(true);
    become({ converged: true });
    expect(await steady).toBe(true);
    become({ converged: false });
    const last = rest.isSteady(never);
    sleepers.at(-1)?.wake();
    expect(await last).toBe(false);
  });

  test('canceling ends the wait', async () => {
    const abort = new AbortController();
    const waiting = stage({ ...on, converged: false }).rest.isSteady(abort.signal);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    await expect(stage(on).rest.isSteady(abort.signal)).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
});

describe('after a snapshot', () => {
  test.each<[Facts, { held?: boolean; idle?: boolean }, boolean]>([
    [{ converged: true }, {}, false],
    [{ converged: true, generation: 0 }, {}, true],
    [{ backendState: 'STARTED' }, {}, true],
    [{ backendState: 'ERROR' }, {}, false],
    [{ backendState: 'STOPPED' }, {}, true],
    [{ backendState: 'STOPPED' }, { held: true }, false],
    [{ backendState: 'STOPPED' }, { idle: true }, false],
    [{ backendState: 'STOPPING' }, { idle: true }, true],
  ])('%j with %j is waited for: %j', async (facts, maintenance, expected) => {
    expect(await waits(stage(facts, maintenance).rest.end(never))).toBe(expected);
  });

  test('the wait has a limit, which is logged', async () => {
    const { rest, sleepers, logged } = stage({ backendState: 'STARTING' });
    const ended = rest.end(never);
    expect(sleepers.map(({ ms }) => ms)).toEqual([600_000]);
    sleepers[0]?.wake();
    await ended;
    expect(logged).toHaveLength(1);
  });

  test('canceling ends the wait, and so does the end of the service, silently', async () => {
    const abort = new AbortController();
    const canceled = stage({ backendState: 'STARTING' }).rest.end(abort.signal);
    abort.abort();
    await expect(canceled).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    const { rest, closing } = stage({ backendState: 'STARTING' });
    const ended = rest.end(never);
    closing.abort();
    await ended;
  });
});
