import type { Command } from './command.ts';

/** Printed after a usage error on stderr; ends with an empty line. */
export function usageBlock(command: Command | undefined): string {
  if (!command) return "Usage:\n  rdctl COMMAND [flags]\n\nRun 'rdctl --help' for the commands.\n\n";
  return `Usage:\n  ${usageLine(command)}\n\nRun 'rdctl ${command.name} --help' for its ${command.subcommands ? 'commands' : 'flags'}.\n\n`;
}

export function usageLine({ name, usage, flags, subcommands }: Command): string {
  if (subcommands) return `rdctl ${name} COMMAND [flags]`;
  const placeholder = Object.keys(flags).length > 0 && !usage.includes('[flags]') ? '[flags]' : '';
  return ['rdctl', name, usage, placeholder].filter((part) => part !== '').join(' ');
}

/** `create` of `snapshot create`. */
export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1);
}
