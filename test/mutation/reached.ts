import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';

/** The mutants that one test file reached while none was active. */
export interface Reached {
  file: string;
  ms: number;
  mutants: number[];
}

const active = Number(process.env.RDCTL_MUTANT ?? -1);
const log = process.env.RDCTL_MUTANTS_LOG;
const reached = new Set<number>();
const started = performance.now();

Object.assign(globalThis, {
  rdctlMutant(id: number) {
    reached.add(id);
    return id === active;
  },
});

if (log !== undefined)
  afterAll(() => {
    const file = relative('.', expect.getState().testPath ?? '');
    const entry: Reached = { file, ms: performance.now() - started, mutants: [...reached] };
    appendFileSync(log, `${JSON.stringify(entry)}\n`);
  });
