import { readFileSync, statfsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { LONG } from './test/helpers/rounds.ts';
import { testSeed } from './test/helpers/seed.ts';

const seed = testSeed();
if (process.env.RDCTL_TEST_SEED === 'random') process.stderr.write(`RDCTL_TEST_SEED=${seed} repeats this search\n`);
const SETUP = 'test/helpers/test-setup.ts';
const BUILDS = 'test/helpers/builds.ts';
/** One seed for all files of a run, whoever chose it. */
const SEARCH = { env: { RDCTL_TEST_SEED: String(seed) }, setupFiles: [SETUP] };

/** What hangs has to end, and nothing else: a computer that is busy with other things is slow by any factor. */
const PATIENT = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000, interval: 10 } } };

/** Tests that start services in this process, the tool or other programs. */
const INTEGRATION = 'test/**/*.integration.test.ts';

/** Those that boot virtual machines: they touch nothing that the others look at, so that both may run at once. */
const MACHINES = 'test/e2e/**/*qemu*.test.ts';

/**
 * Virtual machines that only a long run boots: 9p takes an image with another kernel, a full disk of the host is also in the tests of faults,
 * frozen states and live changes are tested with a scripted QEMU in every run, and the other tests take a machine through most of the contract.
 */
const LONG_MACHINES = LONG
  ? []
  : ['qemu-9p', 'qemu-upgrade', 'full-disk-qemu', 'qemu-contract', 'qemu-frozen', 'qemu-live'].map(
      (name) => `test/e2e/${name}.test.ts`,
    );

/** Tests of `dist/` and of a build of their own, which have nothing to do with a standalone file. */
const ONLY_OF_A_BUILD = ['test/cli/code-cache.integration.test.ts', 'test/plan/new-block.integration.test.ts'];

/** Services flush every small file that they write, which takes most of their time on a disk and none in memory. */
const IN_MEMORY = hasMemoryFiles() ? { TMPDIR: '/dev/shm' } : {};

/** Whether `/dev/shm` is in memory, has a gigabyte free, and allows programs in it to be run. */
function hasMemoryFiles(): boolean {
  if (process.platform !== 'linux' || process.env.TMPDIR !== undefined) return false;
  const options = /^tmpfs \/dev\/shm tmpfs (\S+)/m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
  if (options === undefined || options.split(',').some((option) => option === 'ro' || option === 'noexec'))
    return false;
  const { bavail, bsize } = statfsSync('/dev/shm');
  return bavail * bsize > 2 ** 30;
}

export default defineConfig({
  test: {
    // Two cores: the real programs of the end-to-end tests and the other tests must not starve each other.
    maxWorkers: 2,
    ...(process.env.RDCTL_TEST_JSON
      ? { reporters: ['default', 'json'], outputFile: { json: process.env.RDCTL_TEST_JSON } }
      : {}),
    // A golden file that is missing would be written and pass; `-u` writes and changes them.
    update: 'none',
    projects: [
      {
        test: {
          ...SEARCH,
          setupFiles: [SETUP, 'test/helpers/unit-setup.ts'],
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [INTEGRATION, 'test/e2e/**', 'test/standalone/**', 'test/stress/**'],
          ...PATIENT,
          // Most of the time of these tests would be that of loading the same modules for each file.
          isolate: false,
          restoreMocks: true,
          unstubEnvs: true,
        },
      },
      {
        test: {
          ...SEARCH,
          env: { ...SEARCH.env, ...IN_MEMORY },
          name: 'integration',
          globalSetup: BUILDS,
          include: [INTEGRATION],
          exclude: process.env.RDCTL_TEST_BINARY ? ONLY_OF_A_BUILD : [],
          ...PATIENT,
        },
      },
      {
        test: {
          ...SEARCH,
          name: 'standalone',
          include: ['test/standalone/**/*.test.ts'],
          ...PATIENT,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...SEARCH,
          name: 'e2e',
          globalSetup: BUILDS,
          include: ['test/e2e/**/*.test.ts'],
          exclude: [MACHINES],
          ...PATIENT,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...SEARCH,
          name: 'e2e-machine',
          globalSetup: BUILDS,
          include: [MACHINES],
          exclude: LONG_MACHINES,
          ...PATIENT,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          // A guest without the help of the processor keeps about one core busy.
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...SEARCH,
          name: 'stress',
          include: ['test/stress/**/*.test.ts'],
          ...PATIENT,
          testTimeout: LONG ? 3_600_000 : 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
