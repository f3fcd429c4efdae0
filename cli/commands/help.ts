import { type Command, defineCommand } from '../command.ts';
import { subcommandOf } from '../group.ts';
import { commandHelp, rootHelp, usageBlock } from '../help.ts';

export const help = defineCommand({
  name: 'help',
  summary: 'Show help for a command',
  usage: '[COMMAND]...',
  description: `  rdctl help snapshot create`,
  flags: {},
  classic: true,
  async run({ args, io, commands }) {
    const [topic] = args;
    if (topic === undefined) {
      io.out(rootHelp(commands));
      return 0;
    }
    const entry = commands.find(({ name }) => name === topic);
    const found = entry && args.slice(1).reduce(below, await entry.load());
    if (found) io.out(commandHelp(found, io.platform));
    // Exit 0, as in Rancher Desktop's `rdctl`.
    else io.err(`Unknown help topic [${args.map((arg) => `\`${arg}\``).join(' ')}]\n${usageBlock(undefined)}`);
    return 0;
  },
});

/** An unknown subcommand shows the help of its parent, as in Rancher Desktop's `rdctl`. */
function below(command: Command, word: string): Command {
  return subcommandOf(command, word) ?? command;
}
