import { defineConfig } from 'vitest/config';
import { testSeed } from './test/helpers/seed.ts';
import { viteWorkerSource } from './worker-source.mjs';

const seed = testSeed();
if (process.env.RDCTL_TEST_SEED === 'random') process.stderr.write(`RDCTL_TEST_SEED=${seed} repeats this search\n`);
/** One seed for all files of a run, whoever chose it. */
const SEARCH = { env: { RDCTL_TEST_SEED: String(seed) }, setupFiles: ['test/helpers/test-setup.ts'] };

/** What hangs has to end, and nothing else: a computer that is busy with other things is slow by any factor. */
const PATIENT = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000, interval: 10 } } };

export default defineConfig({
  test: {
    // Two cores: the real programs of the end-to-end tests and the unit tests must not starve each other.
    maxWorkers: 2,
    // A golden file that is missing would be written and pass; `-u` writes and changes them.
    update: 'none',
    projects: [
      {
        plugins: [viteWorkerSource],
        test: {
          ...SEARCH,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/stress/**'],
          ...PATIENT,
        },
      },
      {
        plugins: [viteWorkerSource],
        test: {
          ...SEARCH,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          ...PATIENT,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
      {
        plugins: [viteWorkerSource],
        test: {
          ...SEARCH,
          name: 'stress',
          include: ['test/stress/**/*.test.ts'],
          ...PATIENT,
          testTimeout: process.env.RDCTL_TEST_LONG === '1' ? 3_600_000 : 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
