import { defineCommand } from '../command.ts';
import { COMMANDS } from '../commands.ts';
import { commandHelp, rootHelp, usageBlock } from '../help.ts';

export const help = defineCommand({
  name: 'help',
  summary: 'Show the help of a command',
  usage: '[COMMAND]',
  description: '',
  flags: {},
  classic: true,
  async run({ args, io }) {
    const [topic] = args;
    if (topic === undefined) {
      io.out(rootHelp(COMMANDS));
      return 0;
    }
    const entry = COMMANDS.find(({ name }) => name === topic);
    if (entry) io.out(commandHelp(await entry.load(), io.platform));
    // Not a failure for the compatible tool either: exit 0.
    else io.err(`Unknown help topic [${args.map((arg) => `\`${arg}\``).join(' ')}]\n${usageBlock(undefined)}`);
    return 0;
  },
});
