import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { OUTPUT_FLAG } from '../views/choose.ts';
import { resetEverything, TARGETS } from './reset/factory.ts';

export const factoryResetCommand = defineCommand({
  name: 'factory-reset',
  summary: 'Remove everything of this installation',
  usage: '',
  description: 'The older name of `rdctl reset --factory`, which says more.',
  flags: {
    'remove-kubernetes-cache': { type: 'boolean', summary: 'Remove downloads too' },
    yes: { type: 'boolean', short: 'y', summary: 'Do not ask' },
    target: { type: 'string', summary: 'Which application, where another one runs too', values: TARGETS },
    output: OUTPUT_FLAG,
  },
  classic: true,
  deprecated: "Use 'rdctl reset --factory' instead.",
  async run(invocation) {
    const { flags, args } = invocation;
    noArguments(args, 'factory-reset');
    const { target } = flags;
    return resetEverything(
      {
        cache: flags['remove-kubernetes-cache'] === true,
        yes: flags.yes === true,
        json: flags.output === 'json',
        ...(target ? { target } : {}),
      },
      invocation,
    );
  },
});
