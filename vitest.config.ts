import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Two cores: the real programs of the end-to-end tests and the unit tests must not starve each other.
    maxWorkers: 2,
    projects: [
      {
        test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: ['test/e2e/**'], testTimeout: 20_000 },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          // Fourteen boots of a guest: where they are asked for. `acceptance-qemu` boots one and runs always.
          exclude: process.env.RDCTL_QEMU_CONTRACT === '1' ? [] : ['test/e2e/qemu-contract.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
