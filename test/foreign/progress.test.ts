import { describe, expect, test } from 'vitest';
import { foreignProgress } from '../../src/client/rancher-desktop/progress.ts';
import type { BackendState } from '../../src/reconcile/contract.ts';

const RESTART = 'reconfiguring Rancher Desktop to apply changes (this may take a while)';
const BUSY = 'UI is currently busy, but will eventually be reconfigured to apply requested changes';

/** Feeds states until it is done; returns how many observations that took, and what had to be sent again. */
async function looks(
  progress: ReturnType<typeof foreignProgress>,
  states: readonly BackendState[],
  due: (index: number) => boolean | undefined = () => undefined,
) {
  const said: string[] = [];
  for (const [index, state] of states.entries()) {
    const { settled, failed, repeat } = await progress.observed(state, async () => due(index));
    if (repeat) said.push(repeat);
    if (failed) return { failedAt: index, said };
    if (settled) return { settledAt: index, said };
  }
  return { said };
}

describe('a restart', () => {
  test('is over when the backend left the ready state and is back', async () => {
    const progress = foreignProgress();
    progress.settingsSent(RESTART, 'STARTED');
    const states = ['STARTED', 'STARTED', 'STOPPING', 'STOPPED', 'STARTING', 'STARTED'] as const;
    expect(await looks(progress, states)).toEqual({ settledAt: 5, said: [] });
  });

  test('that went unseen is over when the application requires none', async () => {
    const progress = foreignProgress();
    progress.settingsSent(RESTART, 'STARTED');
    expect(await looks(progress, ['STARTED', 'STARTED', 'STARTED'], (index) => index < 2)).toEqual({
      settledAt: 2,
      said: [],
    });
  });

  test('of a busy application comes after it has been ready once', async () => {
    const progress = foreignProgress();
    progress.settingsSent(BUSY, 'STARTING');
    const states = ['STARTING', 'STARTED', 'STARTED', 'STOPPING', 'STOPPED', 'STARTING', 'DISABLED'] as const;
    expect(await looks(progress, states)).toEqual({ settledAt: 6, said: [] });
  });

  test('is not waited for when none is needed', async () => {
    const progress = foreignProgress();
    progress.settingsSent('settings updated; no restart required', 'STARTED');
    expect(await looks(progress, ['STARTED'])).toEqual({ settledAt: 0, said: [] });
  });
});

describe('a desired power state', () => {
  test('is sent again when it was ignored', async () => {
    const progress = foreignProgress();
    expect(progress.power('stopped', 'STARTING')).toBe(true);
    const states = ['STARTING', 'STARTED', 'STARTED', 'STARTED', 'STARTED', 'STOPPING', 'STOPPED'] as const;
    expect(await looks(progress, states)).toEqual({ settledAt: 6, said: ['stopped'] });
  });

  test('of stopped waits for the end of a restart', async () => {
    const progress = foreignProgress();
    progress.settingsSent(RESTART, 'STARTED');
    expect(progress.power('stopped', 'STARTED')).toBe(false);
    const states = ['STARTED', 'STOPPING', 'STOPPED', 'STARTING', 'STARTED', 'STOPPING', 'STOPPED'] as const;
    expect(await looks(progress, states)).toEqual({ settledAt: 6, said: ['stopped'] });
  });
});

describe('an error', () => {
  test('from before the write does not count', async () => {
    const progress = foreignProgress();
    progress.power('started', 'ERROR');
    expect(await looks(progress, ['ERROR', 'ERROR', 'STARTING', 'STARTED'])).toEqual({ settledAt: 3, said: [] });
  });

  test('after the write counts, and so does one that persists', async () => {
    const progress = foreignProgress();
    progress.settingsSent(RESTART, 'STARTED');
    expect(await looks(progress, ['STOPPING', 'STARTING', 'ERROR'])).toEqual({ failedAt: 2, said: [] });
    const stuck = foreignProgress();
    stuck.power('started', 'ERROR');
    expect(
      await looks(
        stuck,
        Array.from({ length: 40 }, () => 'ERROR' as const),
      ),
    ).toMatchObject({ failedAt: 20 });
  });
});
