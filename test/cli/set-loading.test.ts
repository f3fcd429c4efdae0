import { afterEach, expect, test, vi } from 'vitest';

// A script that sets one value after another must not wait for the code of plans.

const PLAN = '../../cli/commands/plan.ts';
afterEach(() => {
  vi.doUnmock(PLAN);
  vi.resetModules();
});

test('set loads the code of plans only for --dry-run', async () => {
  let isLoaded = false;
  vi.resetModules();
  vi.doMock(PLAN, async (original) => {
    isLoaded = true;
    return original();
  });
  const { rdctl } = await import('../helpers/cli.ts');
  const { temporaryDirectory } = await import('../helpers/temp-home.ts');
  const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated' };
  expect(await rdctl(['set', '--images.show-all=false'], { env })).toMatchObject({ exit: 1, out: '' });
  expect(isLoaded).toBe(false);
  expect(await rdctl(['set', '--images.show-all=false', '--dry-run'], { env })).toMatchObject({ exit: 0 });
  expect(isLoaded).toBe(true);
});
