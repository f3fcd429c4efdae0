import fc from 'fast-check';
import { guardPatterns } from './pattern-guard.ts';
import { runs } from './rounds.ts';
import { testSeed } from './seed.ts';

const { RDCTL_TEST_RUNTIME: runtime } = process.env;
if (runtime && process.versions.bun !== runtime)
  throw new Error(`this is not Bun ${runtime}: start the tests with \`npm run test:runtime\``);

// Applies to fc.assert, fc.check and fc.sample in every test file.
fc.configureGlobal({ seed: testSeed(), numRuns: runs(100) });
guardPatterns();
