import { createClient } from '../../src/client/client.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';

export const listSettings = defineCommand({
  name: 'list-settings',
  summary: 'Print the current settings as JSON',
  usage: '',
  description: `The output is valid input for apply: \`rdctl list-settings | rdctl apply -f -\` changes nothing.
It includes the proxy password.

  rdctl list-settings > settings.json`,
  flags: {
    output: { type: 'string', short: 'o', summary: 'Output format', values: ['json', 'yaml'], yamlFromJson: true },
  },
  classic: true,
  async run({ args, io, connect }) {
    noArguments(args, 'list-settings');
    // No signal: nothing can be left unfinished, and installing handlers costs startup time.
    const { text } = await createClient(await connect()).settings();
    io.out(`${text}\n`);
    return 0;
  },
});
