import { relative } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import { sampleMutants } from './mutants.ts';

const mutants = sampleMutants(Number(process.env.RDCTL_MUTANTS));

/** Inserts every mutant of the sample into the sources; `reached.ts` says which one is active. */
const mutate: Plugin = {
  name: 'mutants',
  enforce: 'pre',
  transform(code, id) {
    const own = mutants.filter(({ file }) => file === relative('.', id));
    // From the end, so that earlier positions stay valid.
    const inOrder = own.sort((one, other) => other.start - one.start);
    return inOrder.reduce(
      (text, { id, start, end, replacement }) =>
        text.slice(0, start) + replacement(`globalThis.rdctlMutant(${id})`) + text.slice(end),
      code,
    );
  },
};

/** The unit tests on mutated sources. */
export default defineConfig({
  plugins: [mutate],
  test: {
    maxWorkers: 1,
    // Mutants reached during module loading belong to the file that loads them.
    isolate: process.env.RDCTL_MUTANTS_LOG !== undefined,
    restoreMocks: true,
    unstubEnvs: true,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    update: 'none',
    setupFiles: ['test/helpers/test-setup.ts', 'test/helpers/unit-setup.ts', 'test/mutation/reached.ts'],
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.integration.test.ts', 'test/e2e/**', 'test/stress/**'],
  },
});
