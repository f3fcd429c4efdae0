import { describe, expect, test } from 'vitest';
import { type StartedClient, waitStarted } from '../../cli/commands/start.ts';
import { RdError } from '../../src/errors.ts';
import type { Clock } from '../../src/os/clock.ts';
import { fakeIo } from '../helpers/cli.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';

/** Time that passes as fast as it is waited for. */
function pace(): Clock & { slept: number } {
  const clock = createVirtualClock({ auto: true });
  const began = clock.now();
  return {
    ...clock,
    get slept() {
      return clock.now() - began;
    },
  };
}

/** A client that plays these responses in turn; the last one repeats. */
function scripted(answers: Record<string, unknown[]>, foreign: boolean): StartedClient {
  const next = (name: string) => async () => {
    const list = answers[name] ?? [];
    const value = list.length > 1 ? list.shift() : list[0];
    if (value instanceof Error) throw value;
    return value;
  };
  const unasked = () => Promise.reject(new Error('not in the script'));
  return {
    connection: { host: '127.0.0.1', port: 1, user: 'u', password: 'p', foreign, reached: { by: 'word' } },
    request: unasked,
    status: next('status') as StartedClient['status'],
    backendState: next('backendState') as StartedClient['backendState'],
    setBackendState: unasked,
    proposal: next('proposal') as StartedClient['proposal'],
    planWithLive: unasked,
  };
}

const SENT = { version: 19 };
const wait = (client: StartedClient, clock: Clock, generation?: number, timeoutMs = 600_000) =>
  waitStarted({ client, generation, sent: SENT, timeoutMs, io: fakeIo(), clock });

const status = (generation: number, observedGeneration: number, converged: boolean, backendState = 'STARTED') => ({
  generation,
  observedGeneration,
  converged,
  backendState,
  phases: [],
  conditions: [],
});

describe('for an rdctl service', () => {
  test('a stale STARTED of the previous generation is not enough', async () => {
    const clock = pace();
    const client = scripted(
      { status: [status(2, 1, true), status(2, 1, true), status(2, 2, false), status(2, 2, true)] },
      false,
    );
    await wait(client, clock, 2);
    expect(clock.slept).toBeGreaterThan(0);
    expect(await client.status()).toEqual(status(2, 2, true));
  });

  test('without a change of its own it waits for the settings in force', async () => {
    await wait(scripted({ status: [status(7, 6, false), status(7, 6, false), status(7, 7, true)] }, false), pace());
  });

  test('the files of the user are waited for, and named when they cannot be changed', async () => {
    const files = (observedGeneration: number, state: string) => ({
      ...status(2, 2, true),
      hostIntegration: { observedGeneration, files: [{ part: 'path', file: '/h/.profile', state, message: 'x' }] },
    });
    const clock = pace();
    await wait(scripted({ status: [files(1, 'managed'), files(2, 'managed')] }, false), clock, 2);
    expect(clock.slept).toBeGreaterThan(0);
    const failing = scripted({ status: [files(2, 'failed')] }, false);
    await expect(wait(failing, clock, 2)).rejects.toMatchObject({
      code: 'ERR_USER_FILES',
      details: ['/h/.profile: x'],
    });
  });

  test('reports once what keeps the backend from starting', async () => {
    const held = (message: string) => ({
      ...status(1, 0, false, 'STOPPED'),
      conditions: [{ type: 'Converged', status: 'False', reason: 'Held', concern: 'patience', message }],
    });
    const io = fakeIo();
    const client = scripted(
      { status: [held('It waits: free it.'), held('It still waits.'), status(1, 1, true)] },
      false,
    );
    await waitStarted({ client, generation: 1, sent: SENT, timeoutMs: 600_000, io, clock: pace() });
    expect(io.text).toEqual({ out: '', err: 'notice: It waits: free it.\n' });
  });

  test('says on stderr what a long wait is for, and nothing of a short one', async () => {
    const working = {
      ...status(1, 0, false, 'STARTING'),
      phases: [{ name: 'cluster start', startedAt: '2026-01-01T00:00:00Z', waitingFor: 'no node has joined' }],
    };
    for (const [ms, err] of [
      [14_000, ''],
      [16_000, '  cluster start … no node has joined\n'],
    ] as const) {
      const io = fakeIo();
      const clock = createVirtualClock({ auto: true });
      const began = clock.now();
      const client = scripted({ status: [working, status(1, 1, true)] }, false);
      const { status: read } = client;
      client.status = async (options) => (clock.now() - began < ms ? (working as never) : read(options));
      await read();
      await waitStarted({ client, generation: 1, sent: SENT, timeoutMs: 600_000, io, clock });
      expect(io.text).toEqual({ out: '', err });
    }
  });

  test('a failed backend', async () => {
    const failing = wait(scripted({ status: [status(1, 1, false, 'ERROR')] }, false), pace(), 1);
    await expect(failing).rejects.toMatchObject({
      code: 'ERR_CONVERGE_FAILED',
      message: 'the Rancher Desktop backend failed to start; check the application logs',
    });
  });

  test('at the deadline', async () => {
    const clock = pace();
    await expect(wait(scripted({ status: [status(1, 0, false)] }, false), clock, 1, 5000)).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      message: 'timed out after 5s waiting for Rancher Desktop to start',
    });
    expect(clock.slept).toBe(5000);
  });
});

describe('for the compatible application', () => {
  const state = (vmState: string) => ({ vmState, locked: false });
  const due = { 'kubernetes.enabled': { current: true, desired: false, severity: 'restart' } };
  const always = { 'kubernetes.port': { current: 6443, severity: 'restart' } };

  test('ready counts only when nothing that was sent requires a restart', async () => {
    const clock = pace();
    const client = scripted(
      {
        backendState: [
          new RdError('ERR_NOT_RUNNING', 'refused'),
          state('STARTED'),
          state('STARTING'),
          state('DISABLED'),
        ],
        proposal: [due, always],
      },
      true,
    );
    await wait(client, clock);
    expect(clock.slept).toBe(6000);
  });

  test('proposes nothing when nothing was sent', async () => {
    const client = scripted(
      { backendState: [state('STARTED')], proposal: [new RdError('ERR_SETTINGS_INVALID', 'asked')] },
      true,
    );
    await waitStarted({ client, generation: 1, sent: undefined, timeoutMs: 1, io: fakeIo(), clock: pace() });
    await expect(wait(client, pace())).rejects.toThrow('asked');
  });

  test('on an error and at the deadline', async () => {
    await expect(wait(scripted({ backendState: [state('ERROR')] }, true), pace())).rejects.toMatchObject({
      code: 'ERR_CONVERGE_FAILED',
    });
    const clock = pace();
    await expect(
      wait(scripted({ backendState: [state('STARTING')] }, true), clock, undefined, 3000),
    ).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      details: ['The last state seen was STARTING.'],
    });
    expect(clock.slept).toBe(3000);
  });
});
