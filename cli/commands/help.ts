import { type Command, defineCommand } from '../command.ts';
import { subcommandOf } from '../group.ts';
import { usageBlock } from '../usage-line.ts';
import { commandHelp, rootHelp } from '../views/help-text.ts';

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
      io.say(rootHelp(commands, io.columns));
      return 0;
    }
    const entry = commands.find(({ name }) => name === topic);
    const found = entry && args.slice(1).reduce(below, await entry.load());
    if (found) io.say(commandHelp(found, io.platform, io.columns));
    // Exits with 0, as Rancher Desktop's `rdctl` does.
    else io.err(`Unknown help topic [${args.map((arg) => `\`${arg}\``).join(' ')}]\n${usageBlock(undefined)}`);
    return 0;
  },
});

/** Returns the subcommand; for an unknown one its parent, whose help is shown, as in Rancher Desktop's `rdctl`. */
function below(command: Command, word: string): Command {
  return subcommandOf(command, word) ?? command;
}
