import { type Check, failed, passed } from '../check.ts';
import type { CheckContext } from '../context.ts';

/** `1` enables the two fixed checks, for tests of clients. */
const VARIABLE = 'RDCTL_STATIC_CHECKS';

const asked = ({ env }: CheckContext) => env[VARIABLE] === '1';

export const staticTrue: Check = {
  id: 'STATIC_TRUE',
  category: 'Testing',
  applies: asked,
  run: async () => [passed('This check always passes.')],
};

export const staticFalse: Check = {
  id: 'STATIC_FALSE',
  category: 'Testing',
  applies: asked,
  run: async () => [
    failed('This check never passes.', [{ description: `Start the service without the variable \`${VARIABLE}\`.` }]),
  ],
};
