import { nearest } from '../src/settings/nearest.ts';
import { classicMistake, quote } from './arguments/values.ts';
import type { Command, FlagTable, Invocation } from './command.ts';
import { lastWord } from './usage-line.ts';

/** A command that only groups others: `rdctl snapshot`. */
export interface GroupInput<T extends FlagTable> {
  name: string;
  summary: string;
  description: string;
  /** Flags that may precede the subcommand; each subcommand declares them too. */
  flags: T;
  classic: boolean;
  subcommands: readonly Command[];
  /** Runs without a subcommand or with an unknown one. The default is help on stdout, or `ERR_USAGE`. */
  otherwise?(invocation: Invocation<T>): Promise<number>;
}

/** Returns the group as a command whose `run` is called when no subcommand was given. */
export function defineGroup<const T extends FlagTable>(input: GroupInput<T>): Command<T> {
  const { otherwise, ...rest } = input;
  const group: Command<T> = {
    ...rest,
    usage: 'COMMAND',
    async run(invocation) {
      if (otherwise) return otherwise(invocation);
      const { args, io } = invocation;
      const [word] = args;
      if (word !== undefined) throw unknownSubcommand(word, input);
      const { commandHelp } = await import('./views/help-text.ts');
      io.say(commandHelp(group, io.platform, io.columns));
      return 0;
    },
  };
  return group;
}

/** Returns the subcommand with that name or alias. */
export function subcommandOf({ subcommands = [] }: Pick<Command, 'subcommands'>, word: string): Command | undefined {
  return subcommands.find(({ name, aliases = [] }) => lastWord(name) === word || aliases.includes(word));
}

function unknownSubcommand(word: string, { name, subcommands }: Pick<Command, 'name' | 'subcommands'>) {
  const words = (subcommands ?? []).map((each) => lastWord(each.name));
  const close = nearest(word, words);
  return classicMistake(
    `unknown command ${quote(word)} for "rdctl ${name}"`,
    `rdctl ${name} has no command ${quote(word)}`,
    close === undefined ? undefined : `Did you mean ${close}?`,
  );
}
