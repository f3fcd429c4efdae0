import type { Platform } from '../src/settings/field.ts';
import { GLOBAL_FLAGS } from './arguments/arguments.ts';
import type { Command, CommandEntry, Flag, FlagTable, Group } from './command.ts';

const WIDTH = 80;

export const GROUPS: readonly (readonly [Group, string])[] = [
  ['declare', 'Manage the desktop with a profile:'],
  ['control', 'Control the service directly:'],
  ['other', 'Other:'],
];

/** The output of `rdctl`, `rdctl help` and `rdctl --help`. */
export function rootHelp(all: readonly CommandEntry[]): string {
  const commands = all.filter(({ hidden }) => !hidden);
  const label = Math.max(...commands.map(({ name }) => name.length));
  const groups = GROUPS.map(([group, title]) => {
    const lines = commands
      .filter((entry) => entry.group === group)
      .map(({ name, summary }) => `  ${name.padEnd(label)}  ${summary}`);
    return `${title}\n${lines.join('\n')}\n`;
  });
  return [
    'rdctl turns a desired-state file into a running container desktop.\n',
    'Usage:\n  rdctl COMMAND [flags]\n',
    ...groups,
    `Global flags:\n${flagLines(GLOBAL_FLAGS)}`,
    `${flowed(EXIT_CODES)}\n`,
    "Run 'rdctl COMMAND --help' for details on a command.\n",
  ].join('\n');
}

/** docs/commands.md has the full table. */
const EXIT_CODES = `Exit codes: 0 success; 1 failure; 3 refused; 4 timed out; 5 consent required; 6 the plan is stale.
Commands that Rancher Desktop's rdctl has, too, exit with 0 or 1, or with 3 if the service or application found
is not the intended one.`;

/** The output of `rdctl COMMAND --help`. Flags are sorted; hidden ones are left out. */
export function commandHelp(command: Command, platform: Platform): string {
  const own = flagLines(command.flags, [], platform);
  const description = flowed(command.description.trimEnd());
  return [
    `${command.summary}\n`,
    `Usage:\n  ${usageLine(command)}\n`,
    ...(description === '' ? [] : [`${description}\n`]),
    ...(command.subcommands ? [`Commands:\n${subcommandLines(command.subcommands)}`] : []),
    ...(own === '' ? [] : [`Flags:\n${own}`]),
    `Global flags:\n${flagLines(GLOBAL_FLAGS, Object.keys(command.flags))}`,
  ].join('\n');
}

/** Printed after a usage error on stderr; ends with an empty line. */
export function usageBlock(command: Command | undefined): string {
  if (!command) return "Usage:\n  rdctl COMMAND [flags]\n\nRun 'rdctl --help' for the commands.\n\n";
  return `Usage:\n  ${usageLine(command)}\n\nRun 'rdctl ${command.name} --help' for its ${command.subcommands ? 'commands' : 'flags'}.\n\n`;
}

function subcommandLines(subcommands: readonly Command[]): string {
  const rows = subcommands.map(({ name, aliases = [], summary }) => [[lastWord(name), ...aliases].join(', '), summary]);
  const column = Math.max(...rows.map(([words = '']) => words.length)) + 4;
  return rows.map(([words = '', summary = '']) => row(`  ${words}`, summary, column)).join('');
}

/** `create` of `snapshot create`. */
export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf(' ') + 1);
}

export function usageLine({ name, usage, flags, subcommands }: Command): string {
  if (subcommands) return `rdctl ${name} COMMAND [flags]`;
  const placeholder = Object.keys(flags).length > 0 && !usage.includes('[flags]') ? '[flags]' : '';
  return ['rdctl', name, usage, placeholder].filter((part) => part !== '').join(' ');
}

function flagLines(table: FlagTable, except: readonly string[] = [], platform?: Platform): string {
  const rows = flagRows(table, except, platform);
  if (rows.length === 0) return '';
  // Longer labels put their summary on the next line.
  const column = Math.min(32, Math.max(...rows.map(([text]) => text.length)) + 2);
  return rows.map(([text, summary]) => row(text, summary, column)).join('');
}

/** Label and summary of each visible flag, sorted. */
export function flagRows(
  table: FlagTable,
  except: readonly string[] = [],
  platform?: Platform,
): (readonly [label: string, summary: string])[] {
  return Object.entries(table)
    .filter(([name, flag]) => !flag.hidden && !except.includes(name) && shownOn(flag, platform))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => [label(name, flag), flag.summary] as const);
}

function shownOn(flag: Flag, platform: Platform | undefined): boolean {
  return platform === undefined || (flag.platforms?.includes(platform) ?? true);
}

function label(name: string, flag: Flag): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = valueLabel(flag);
  return `  ${short}--${name}${value === '' ? '' : ` ${value}`}`;
}

function valueLabel(flag: Flag): string {
  switch (flag.type) {
    case 'boolean':
      return '';
    case 'integer':
      return 'INT';
    case 'duration':
      return 'DURATION';
    case 'strings':
      return flag.placeholder ?? 'TEXT';
    case 'string':
      return flag.values?.join('|') ?? flag.placeholder ?? 'TEXT';
  }
}

function row(text: string, summary: string, column: number): string {
  const lines = wrap(summary, WIDTH - column);
  const indent = ' '.repeat(column);
  const first = text.length + 2 <= column ? `${text.padEnd(column)}${lines.shift() ?? ''}` : text;
  return [first, ...lines.map((line) => indent + line)].map((line) => `${line.trimEnd()}\n`).join('');
}

/** Wraps paragraphs; indented lines, such as examples, stay as they are. Exit codes start a paragraph. */
function flowed(text: string): string {
  const paragraphs = text.split(/\n{2,}|\n(?=Exit codes:)/).map((paragraph) => {
    const lines: string[] = [];
    for (const line of paragraph.split('\n')) {
      const last = lines.at(-1);
      if (last === undefined || /^\s/.test(line) || /^\s/.test(last)) lines.push(line);
      else lines[lines.length - 1] = `${last} ${line}`;
    }
    return lines.flatMap((line) => (/^\s/.test(line) ? [line] : wrap(line, WIDTH))).join('\n');
  });
  return paragraphs.join('\n\n');
}

/** The words of a text in lines of at most `width` characters; a longer word is a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
