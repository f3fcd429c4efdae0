import type { Platform } from '../../src/settings/field.ts';
import { GLOBAL_FLAGS } from '../arguments/arguments.ts';
import type { Command, CommandEntry, Flag, FlagTable, Group } from '../command.ts';
import { lastWord, usageLine } from '../usage-line.ts';
import { wrap } from './fold.ts';

/** Columns of text, unless the terminal is narrower. */
const WIDTH = 80;
const LEAST = 40;

export const GROUPS: readonly (readonly [Group, string])[] = [
  ['declare', 'Manage the desktop with a profile:'],
  ['control', 'Control the service directly:'],
  ['other', 'Other:'],
];

/** Returns the output of `rdctl`, `rdctl help` and `rdctl --help`. `columns` are those of the terminal. */
export function rootHelp(all: readonly CommandEntry[], columns?: number): string {
  const width = widthIn(columns);
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
    `Global flags:\n${flagLines(GLOBAL_FLAGS, width)}`,
    `${reflow(EXIT_CODES, width)}\n`,
    "Run 'rdctl COMMAND --help' for details on a command.\n",
  ].join('\n');
}

/** Summary of the exit codes; docs/commands.md has the full table. */
const EXIT_CODES = `Exit codes: 0 success; 1 failure; 3 refused; 4 timed out; 5 consent required; 6 the plan is stale.
Commands that Rancher Desktop's rdctl has, too, exit with 0 or 1, or with 3 if the service or application found
is not the intended one.`;

/** Returns the output of `rdctl COMMAND --help`. Flags are sorted; hidden ones are left out. `columns` are those of the terminal. */
export function commandHelp(command: Command, platform: Platform, columns?: number): string {
  const width = widthIn(columns);
  const own = flagLines(command.flags, width, [], platform);
  const description = reflow(command.description.trimEnd(), width);
  return [
    `${command.summary}\n`,
    `Usage:\n  ${usageLine(command)}\n`,
    ...(description === '' ? [] : [`${description}\n`]),
    ...(command.subcommands ? [`Commands:\n${subcommandLines(command.subcommands, width)}`] : []),
    ...(own === '' ? [] : [`Flags:\n${own}`]),
    `Global flags:\n${flagLines(GLOBAL_FLAGS, width, Object.keys(command.flags))}`,
  ].join('\n');
}

function widthIn(columns = WIDTH): number {
  return Math.max(LEAST, Math.min(columns, WIDTH));
}

function subcommandLines(subcommands: readonly Command[], width: number): string {
  const rows = subcommands.map(({ name, aliases = [], summary }) => [[lastWord(name), ...aliases].join(', '), summary]);
  const column = Math.max(...rows.map(([words = '']) => words.length)) + 4;
  return rows.map(([words = '', summary = '']) => row(`  ${words}`, summary, column, width)).join('');
}

function flagLines(table: FlagTable, width: number, except: readonly string[] = [], platform?: Platform): string {
  const rows = flagRows(table, except, platform);
  if (rows.length === 0) return '';
  // Longer labels put their summary on the next line.
  const column = Math.min(32, Math.floor(width / 2), Math.max(...rows.map(([text]) => text.length)) + 2);
  return rows.map(([text, summary]) => row(text, summary, column, width)).join('');
}

/** Returns label and summary of each visible flag, sorted. */
export function flagRows(
  table: FlagTable,
  except: readonly string[] = [],
  platform?: Platform,
): (readonly [label: string, summary: string])[] {
  return Object.entries(table)
    .filter(([name, flag]) => !flag.hidden && !except.includes(name) && isShownOn(flag, platform))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => [label(name, flag), flag.summary] as const);
}

function isShownOn(flag: Flag, platform: Platform | undefined): boolean {
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

function row(text: string, summary: string, column: number, width: number): string {
  const lines = wrap(summary.split(' '), width - column);
  const indent = ' '.repeat(column);
  const first = text.length + 2 <= column ? `${text.padEnd(column)}${lines.shift() ?? ''}` : text;
  return [first, ...lines.map((line) => indent + line)].map((line) => `${line.trimEnd()}\n`).join('');
}

/** Wraps paragraphs; indented lines, such as examples, stay as they are. Exit codes start a paragraph. */
function reflow(text: string, width: number): string {
  const paragraphs = text.split(/\n{2,}|\n(?=Exit codes:)/).map((paragraph) => {
    const lines: string[] = [];
    for (const line of paragraph.split('\n')) {
      const last = lines.at(-1);
      if (last === undefined || /^\s/.test(line) || /^\s/.test(last)) lines.push(line);
      else lines[lines.length - 1] = `${last} ${line}`;
    }
    return lines.flatMap((line) => (/^\s/.test(line) ? [line] : wrap(line.split(' '), width))).join('\n');
  });
  return paragraphs.join('\n\n');
}
