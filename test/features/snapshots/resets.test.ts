import { expect, test } from 'vitest';
import { createResets } from '../../../src/features/snapshots/resets.ts';
import type { Condition, LoopStatus } from '../../../src/reconcile/contract.ts';
import { createVirtualClock } from '../../reconcile/virtual-clock.ts';

const MINUTE = 60_000;

function condition(type: Condition['type'], reason: string, message: string): Condition {
  const rest = { status: 'False', concern: 'patience', observedGeneration: 1, lastTransitionTime: '' } as const;
  return { type, reason, message, ...rest };
}

/** A backend that is reset at once and then stays as `later` says. */
function resetting(later: Partial<LoopStatus>) {
  const clock = createVirtualClock();
  const before = { backendState: 'STARTED', generation: 1, converged: true, conditions: [] };
  let status = before as unknown as LoopStatus;
  const refuse = () => {
    throw new Error('unused');
  };
  const reset = createResets({
    driver: { keeps: [], hasCluster: false },
    maintenance: {
      heldBy: () => undefined,
      async run(_action, signal, work) {
        const done = await work({
          signal,
          progress: () => undefined,
          resetCluster: async () => undefined,
          keepOff: refuse,
        });
        status = { ...status, converged: false, ...later };
        return done;
      },
    },
    controllers: { status: () => status, onChange: () => () => undefined, observed: refuse },
    keptState: { wipe: async () => undefined },
    safetySnapshots: { impossible: undefined, within: refuse, around: refuse } as never,
    store: { snapshot: () => ({ desired: { generation: 1 } }) as never, write: refuse },
    failed: () => undefined,
    notice: () => undefined,
    log: () => undefined,
    closing: new AbortController().signal,
    clock,
  });
  return { reset: () => reset('fast', { by: { how: 'reset' }, snapshot: 'none' }), clock };
}

test('a reset whose backend does not come back ends after ten minutes and names what is missing', async () => {
  const { reset, clock } = resetting({
    backendState: 'STARTING',
    conditions: [
      condition('ClusterReady', 'NotAnsweringYet', 'The cluster has been started and does not respond yet.'),
      condition('Converged', 'WaitingForCluster', 'Every step is done; the cluster does not respond yet.'),
    ],
  });
  let ended: unknown;
  const waiting = reset().catch((error: unknown) => {
    ended = error;
  });
  await clock.advance(10 * MINUTE - 1);
  expect(ended).toBeUndefined();
  await clock.advance(1);
  await waiting;
  expect(ended).toMatchObject({
    code: 'ERR_DEADLINE',
    message:
      'the data was reset, and the backend is not up again after 10 minutes (ClusterReady: NotAnsweringYet. The cluster has been started and does not respond yet.)',
  });
});

test('a reset whose backend fails ends at once', async () => {
  const { reset } = resetting({
    backendState: 'ERROR',
    conditions: [condition('Converged', 'Failed', 'engine start failed.')],
  });
  await expect(reset()).rejects.toMatchObject({ code: 'ERR_CONVERGE_FAILED' });
});
