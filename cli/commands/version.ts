import { PRODUCT } from '../../src/product.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';
import { jsonText } from '../views/text.ts';

export const version = defineCommand({
  name: 'version',
  summary: 'Show the versions of rdctl and its API',
  usage: '',
  description: `Does not need a service.

  rdctl version`,
  flags: {
    output: {
      type: 'string',
      short: 'o',
      summary: 'Output format',
      values: ['text', 'json', 'yaml'],
      yamlFromJson: true,
    },
  },
  classic: true,
  async run({ flags, args, io }) {
    noArguments(args, 'version');
    const client = `v${PRODUCT.version}`;
    if (flags.output === 'json') {
      io.out(jsonText({ version: client, apiVersion: PRODUCT.apiVersion }));
    } else {
      io.out(`rdctl client version: ${client}, targeting server version: ${PRODUCT.apiVersion}\n`);
    }
    return 0;
  },
});
