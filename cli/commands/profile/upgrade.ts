import { RdError } from '../../../src/errors.ts';
import { exactArguments } from '../../arguments.ts';
import { defineCommand } from '../../command.ts';

export const profileUpgrade = defineCommand({
  name: 'profile upgrade',
  summary: 'Rewrite a file to the newest settings version',
  usage: 'FILE',
  description: 'Comments, order and spelling of what does not change are kept.',
  flags: {},
  classic: false,
  async run({ args }) {
    exactArguments(args, 1);
    throw new RdError('ERR_USAGE', 'this is not available yet');
  },
});
