import { describe, expect, test } from 'vitest';
import { blockingCondition, pollStatus, type WaitInput, waitConverged } from '../../src/client/converge.ts';
import { RdError } from '../../src/errors.ts';
import type { Condition } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { statusWith } from '../helpers/plans.ts';

const WORKING = { converged: false, observedGeneration: 2, backendState: 'STARTING' as const };

/** Time that passes only while something sleeps. */
function fakeClock() {
  let now = 1000;
  const sleeps: number[] = [];
  return {
    sleeps,
    now: () => now,
    sleep: async (ms: number) => {
      sleeps.push(ms);
      now += ms;
    },
  };
}

/** One response after the other; the last one repeats. */
function answers(...list: (StatusDocument | Error)[]) {
  let at = -1;
  return async () => {
    at = Math.min(at + 1, list.length - 1);
    const answer = list[at];
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('no answer');
    return answer;
  };
}

function wait(
  read: () => Promise<StatusDocument>,
  {
    seen,
    ...rest
  }: Partial<Pick<WaitInput<StatusDocument>, 'timeoutMs' | 'generation' | 'needsProof' | 'onLater'>> & {
    seen?: StatusDocument[];
  } = {},
) {
  const clock = fakeClock();
  const { signal } = new AbortController();
  const promise = waitConverged({
    feed: pollStatus({ read, clock, signal }),
    generation: 3,
    timeoutMs: 60_000,
    ...rest,
    clock,
    signal,
    onStatus: (status) => seen?.push(status),
  });
  return { promise, clock };
}

function condition(rest: Partial<Condition>): Condition {
  return {
    type: 'EngineReady',
    status: 'False',
    reason: 'StartFailed',
    concern: 'attention',
    message: 'dockerd ended with exit status 1',
    observedGeneration: 3,
    lastTransitionTime: '2026-01-02T03:04:05.000Z',
    ...rest,
  };
}

describe('waiting', () => {
  test('ends at once when the generation has converged', async () => {
    const { promise, clock } = wait(answers(statusWith()));
    expect((await promise).converged).toBe(true);
    expect(clock.sleeps).toEqual([]);
  });

  test('ignores the convergence of an older generation', async () => {
    const { promise, clock } = wait(answers(statusWith(), statusWith({ generation: 4, observedGeneration: 4 })), {
      generation: 4,
    });
    expect((await promise).observedGeneration).toBe(4);
    expect(clock.sleeps).toHaveLength(1);
  });

  test('polls less often while nothing changes, and more often after a change', async () => {
    const still = statusWith(WORKING);
    const moved = statusWith({ ...WORKING, phases: [{ name: 'engine start', startedAt: '2026-01-02T03:04:05.000Z' }] });
    const { promise, clock } = wait(answers(still, still, still, moved, statusWith()));
    await promise;
    expect(clock.sleeps).toEqual([50, 75, 112.5, 50]);
  });

  test('reports each different status once', async () => {
    const seen: StatusDocument[] = [];
    await wait(answers(statusWith(WORKING), statusWith(WORKING), statusWith()), { seen }).promise;
    expect(seen.map((status) => status.converged)).toEqual([false, true]);
  });

  test('gives up at the deadline and names what is pending', async () => {
    const open = statusWith({
      ...WORKING,
      conditions: [condition({ concern: 'patience', reason: 'Starting', message: 'moby is starting' })],
    });
    const { promise, clock } = wait(answers(open), { timeoutMs: 2000 });
    await expect(promise).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      message: 'The backend has not converged within 2 s (EngineReady: Starting): moby is starting.',
    });
    expect(clock.now()).toBe(3000);
  });

  test('fails with the condition when the service gave up on this generation', async () => {
    const failed = statusWith({
      ...WORKING,
      observedGeneration: 3,
      backendState: 'ERROR',
      conditions: [condition({})],
    });
    await expect(wait(answers(failed)).promise).rejects.toMatchObject({
      code: 'ERR_CONVERGE_FAILED',
      message:
        'The backend did not reach the desired state (EngineReady: StartFailed): dockerd ended with exit status 1.',
    });
  });

  test('waits while the service undoes the change, and then says so', async () => {
    const failed = { ...WORKING, observedGeneration: 3, backendState: 'ERROR' as const, conditions: [condition({})] };
    const transaction = { generation: 3, onFailure: 'return' as const, reason: 'dockerd refused it.', to: 1 };
    const returning = { transaction: { ...transaction, state: 'returning' as const } };
    const written = statusWith({ ...returning, generation: 4, observedGeneration: 4 });
    const returned = statusWith({
      ...{ generation: 4, observedGeneration: 4 },
      transaction: { ...transaction, state: 'returned', returnGeneration: 4 },
    });
    const seen: StatusDocument[] = [];
    await expect(
      wait(answers(statusWith({ ...failed, ...returning }), written, returned), { seen }).promise,
    ).rejects.toMatchObject({
      code: 'ERR_CONVERGE_FAILED',
      message: 'The change failed and was undone: dockerd refused it.',
      details: [expect.stringContaining('Generation 3 is undone by generation 4'), expect.any(String)],
    });
    expect(seen).toHaveLength(3);
  });

  test('waits while the change of another apply is undone', async () => {
    const failed = { ...WORKING, observedGeneration: 3, backendState: 'ERROR' as const, conditions: [condition({})] };
    const transaction = { generation: 2, onFailure: 'return', state: 'returning', to: 1 } as const;
    const returned = statusWith({
      generation: 4,
      observedGeneration: 4,
      transaction: { ...transaction, state: 'returned' },
    });
    await expect(wait(answers(statusWith({ ...failed, transaction }), returned)).promise).resolves.toBe(returned);
  });

  test('says why a failed change was kept', async () => {
    const failed = { ...WORKING, observedGeneration: 3, backendState: 'ERROR' as const, conditions: [condition({})] };
    const kept = { generation: 3, onFailure: 'return', state: 'kept', keptBecause: 'the disk is full' } as const;
    await expect(wait(answers(statusWith({ ...failed, transaction: kept }))).promise).rejects.toMatchObject({
      message: expect.stringMatching(/exit status 1\. The change is kept, because the disk is full\.$/),
    });
  });

  test('waits out an error of an older generation', async () => {
    const old = statusWith({ ...WORKING, backendState: 'ERROR', conditions: [condition({ observedGeneration: 2 })] });
    await expect(wait(answers(old, statusWith())).promise).resolves.toMatchObject({ converged: true });
  });

  test('survives a short outage of the service, but not a long one', async () => {
    const away = new RdError('ERR_NOT_RUNNING', 'connection refused');
    await expect(wait(answers(away, away, statusWith())).promise).resolves.toMatchObject({ converged: true });
    const { promise, clock } = wait(answers(away));
    await expect(promise).rejects.toMatchObject({
      code: 'ERR_NOT_RUNNING',
      cause: away,
      advice: expect.stringContaining('same command again'),
    });
    expect(clock.now()).toBeGreaterThanOrEqual(4000);
    expect(clock.now()).toBeLessThan(6000);
  });

  test('fails at once on other errors', async () => {
    const refused = new RdError('ERR_UNAUTHORIZED', 'no');
    const { promise, clock } = wait(answers(refused));
    await expect(promise).rejects.toBe(refused);
    expect(clock.sleeps).toEqual([]);
  });

  test('stops when it is interrupted', async () => {
    const controller = new AbortController();
    controller.abort();
    const promise = waitConverged({
      feed: pollStatus({ read: answers(statusWith(WORKING)), clock: fakeClock(), signal: controller.signal }),
      generation: 3,
      timeoutMs: 1000,
      clock: fakeClock(),
      signal: controller.signal,
    });
    await expect(promise).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
});

describe('the condition to blame', () => {
  const converged = condition({ type: 'Converged', reason: 'Failed' });
  const engine = condition({});
  const noCluster = condition({ type: 'ClusterReady', reason: 'NotSupportedByDriver', concern: 'none' });
  const off = condition({ type: 'ClusterReady', reason: 'SwitchedOff', concern: 'none' });
  const poweredOff = condition({ type: 'MachineReady', reason: 'PoweredOff', concern: 'none' });
  const restarting = condition({ type: 'MachineReady', reason: 'Restarting', concern: 'patience' });
  const working = condition({ type: 'Converged', reason: 'Working', concern: 'patience' });

  test.each<[string, Condition[], Condition | undefined]>([
    ['the part, before the sum of the parts', [converged, noCluster, engine], engine],
    ['the sum, where no part is wrong', [noCluster, converged], converged],
    ['what is wrong, before what is under way', [restarting, engine, off, converged], engine],
    ['what is under way, where nothing is wrong', [off, restarting, working], restarting],
    ['never what is as wanted', [poweredOff, off, noCluster, working], working],
    ['nothing, where all is as wanted', [poweredOff, off, noCluster], undefined],
    ['nothing, where nothing is said', [], undefined],
  ])('%s', (_what, conditions, expected) => {
    expect(blockingCondition(statusWith({ conditions }))).toBe(expected);
  });
});

test('a change that started something is waited for until it is proven, and another is not', async () => {
  const transaction = { generation: 3, onFailure: 'return' as const };
  const proving = statusWith({ transaction: { ...transaction, state: 'proving' } });
  const done = statusWith({ transaction: { ...transaction, state: 'done' } });
  const { promise, clock } = wait(answers(proving, proving, done), { needsProof: () => true });
  expect((await promise).transaction?.state).toBe('done');
  expect(clock.sleeps).toHaveLength(2);
  const stored = wait(answers(proving), { needsProof: () => false });
  expect((await stored.promise).transaction?.state).toBe('proving');
});

test('a service that is stopping reaches nothing any more, whatever is converged', async () => {
  const stopping = condition({
    type: 'Converged',
    reason: 'ServiceStopping',
    concern: 'patience',
    message: 'stopping',
  });
  const ended = statusWith({ generation: 4, observedGeneration: 4, conditions: [stopping] });
  await expect(wait(answers(ended)).promise).rejects.toMatchObject({ code: 'ERR_STOPPED' });
});

test('a later write is judged once, and the service that undoes or continues the change is none', async () => {
  const later: number[] = [];
  const onLater = async () => void later.push(later.length);
  const of = (generation: number, transaction?: StatusDocument['transaction']) =>
    statusWith({
      ...WORKING,
      generation,
      observedGeneration: generation,
      ...(transaction ? { transaction } : {}),
    });
  const own = { generation: 3, onFailure: 'return', state: 'changing' } as const;
  const done = statusWith({ generation: 5, observedGeneration: 5 });
  await wait(answers(of(3, own), of(4, own), of(5, { ...own, state: 'superseded' }), of(5), done), { onLater }).promise;
  expect(later).toEqual([0]);
  const superseded = new Error('superseded');
  const refused = wait(answers(of(4, { ...own, state: 'superseded' })), { onLater: () => Promise.reject(superseded) });
  await expect(refused.promise).rejects.toBe(superseded);
});
