import type { Command } from './command.ts';

/** Returns the usage block for stderr after a usage error; ends with an empty line. */
export function usageBlock(command: Command | undefined): string {
  if (!command) return "Usage:\n  rdctl COMMAND [flags]\n\nRun 'rdctl --help' for the commands.\n\n";
  return `Usage:\n  ${usageLine(command)}\n\nRun 'rdctl ${command.name} --help' for its ${command.subcommands ? 'commands' : 'flags'}.\n\n`;
}

export function usageLine({ name, usage, flags, subcommands }: Command): string {
  if (subcommands) return `rdctl ${name} COMMAND [flags]`;
  const placeholder = Object.keys(flags).length > 0 && !usage.includes('[flags]') ? '[flags]' : '';
  return ['rdctl', name, usage, placeholder].filter((part) => part !== '').join(' ');
}

/** Returns the last word of a command's name: `create` of `snapshot create`. */
export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1);
}
