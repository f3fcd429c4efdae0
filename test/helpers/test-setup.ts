import fc from 'fast-check';
import { guardPatterns } from './pattern-guard.ts';
import { runs } from './rounds.ts';
import { testSeed } from './seed.ts';

// Applies to fc.assert, fc.check and fc.sample in every test file.
fc.configureGlobal({ seed: testSeed(), numRuns: runs(100) });
guardPatterns();
