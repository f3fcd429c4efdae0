import { createClient } from '../../src/client/client.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand } from '../command.ts';

export const listSettings = defineCommand({
  name: 'list-settings',
  summary: 'Print the settings that are in force as JSON',
  usage: '',
  description: `What it prints can be applied again: \`rdctl list-settings | rdctl apply -f -\` changes nothing.
The document holds everything, the proxy password included.`,
  flags: { output: { type: 'string', short: 'o', summary: 'Format; there is one', values: ['json'] } },
  classic: true,
  async run({ args, io, connect }) {
    noArguments(args, 'list-settings');
    // No signal: nothing can be left half done, and installing handlers costs startup time.
    const { text } = await createClient(await connect()).settings();
    io.out(`${text}\n`);
    return 0;
  },
});
