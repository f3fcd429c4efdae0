import fc from 'fast-check';
import { expect, test } from 'vitest';
import { freePort } from '../helpers/free-port.ts';
import { LONG, rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { TOOL } from '../helpers/tool-program.ts';
import { openDesk } from './plans/desk.ts';
import { type Step, stepArbitrary } from './plans/steps.ts';
import { walkAt } from './plans/walk.ts';

const SEQUENCES = rounds(6, 400);
const LENGTH = 9;

async function walk(steps: readonly Step[]): Promise<void> {
  const desk = openDesk(TOOL);
  const { take, trace } = walkAt(desk);
  try {
    for (const step of steps) await take(step);
  } catch (error) {
    throw new Error(`${trace.join('\n')}\n${error instanceof Error ? error.stack : String(error)}`, { cause: error });
  } finally {
    await desk.close();
  }
}

test('a plan is what apply did, whatever was killed between the steps', async () => {
  const ports = [await freePort(), await freePort()];
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepArbitrary(ports), { minLength: 3, maxLength: LENGTH, size: 'max' }),
      async (steps) => {
        await walk(steps);
        taken += steps.length;
      },
    ),
    { numRuns: SEQUENCES, seed: testSeed(), endOnFailure: !LONG },
  );
  expect(taken).toBeGreaterThan(SEQUENCES);
});
