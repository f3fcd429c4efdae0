import { type Command, defineCommand } from '../command.ts';
import { COMMANDS } from '../commands.ts';
import { subcommandOf } from '../group.ts';
import { commandHelp, rootHelp, usageBlock } from '../help.ts';

export const help = defineCommand({
  name: 'help',
  summary: 'Show the help of a command',
  usage: '[COMMAND]...',
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
    const found = entry && args.slice(1).reduce(below, await entry.load());
    if (found) io.out(commandHelp(found, io.platform));
    // Not a failure for the compatible tool either: exit 0.
    else io.err(`Unknown help topic [${args.map((arg) => `\`${arg}\``).join(' ')}]\n${usageBlock(undefined)}`);
    return 0;
  },
});

/** A word that names no subcommand leaves the help of what is above it, as for the compatible tool. */
function below(command: Command, word: string): Command {
  return subcommandOf(command, word) ?? command;
}
