import fc from 'fast-check';
import { guardPatterns } from './pattern-guard.ts';
import { testSeed } from './seed.ts';

// For fc.assert, fc.check and fc.sample alike, in every test file.
fc.configureGlobal({ seed: testSeed() });
guardPatterns();
