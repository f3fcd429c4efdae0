import { commandIndex, GLOBAL_FLAGS } from '../arguments/arguments.ts';
import type { Command, Flag, FlagTable } from '../command.ts';
import type { CommandEntry } from '../commands.ts';
import { subcommandOf } from '../group.ts';

/** The kind of word at the cursor. */
export type CompletionContext =
  /** An argument of an unknown command. */
  | { what: 'nothing'; prefix: string }
  /** A command name; `of` is absent at the top level. */
  | { what: 'command'; of?: Command; prefix: string }
  | { what: 'flag'; command: Command | undefined; given: ReadonlySet<string>; prefix: string }
  | { what: 'value'; name: string; flag: Flag; prefix: string }
  /** An argument; `before` are the preceding ones. */
  | { what: 'argument'; command: Command; before: readonly string[]; prefix: string };

/** Determines what is being completed; the last word is the incomplete one. */
export async function completionContext(
  words: readonly string[],
  commands: readonly CommandEntry[],
): Promise<CompletionContext> {
  const prefix = words.at(-1) ?? '';
  let before = words.slice(0, -1);
  let command: Command | undefined;
  const at = commandIndex(before);
  if (at !== undefined) {
    command = await commands.find(({ name }) => name === before[at])?.load();
    before = [...before.slice(0, at), ...before.slice(at + 1)];
  }
  for (;;) {
    const next: number | undefined = command?.subcommands && commandIndex(before, command.flags);
    const found: Command | undefined =
      next === undefined || !command ? undefined : subcommandOf(command, before[next] ?? '');
    if (next === undefined || !found) break;
    command = found;
    before = [...before.slice(0, next), ...before.slice(next + 1)];
  }
  return inCommand(command, at === undefined, before, prefix);
}

function inCommand(
  command: Command | undefined,
  noneNamed: boolean,
  before: readonly string[],
  prefix: string,
): CompletionContext {
  const flags = flagIndex(command?.flags ?? {});
  const read = command?.passesWords ? { given: new Set<string>(), args: before } : readWords(before, flags);
  if (read.pending) return { what: 'value', ...read.pending, prefix };
  if (prefix.startsWith('-') && prefix !== '-' && !read.ended && !command?.passesWords) {
    const [, name = '', text] = /^--?([^=]*)(?:=([\s\S]*))?$/.exec(prefix) ?? [];
    const found = text === undefined ? undefined : flags.get(name);
    if (found && text !== undefined) return { what: 'value', ...found, prefix: text };
  }
  if (prefix.startsWith('-') && !read.ended && !command?.passesWords) {
    return { what: 'flag', command, given: read.given, prefix };
  }
  if (!command) return { what: noneNamed ? 'command' : 'nothing', prefix };
  if (command.subcommands && read.args.length === 0) return { what: 'command', of: command, prefix };
  return { what: 'argument', command, before: read.args, prefix };
}

interface Named {
  name: string;
  flag: Flag;
}

/** Flags by every name, including aliases and letters. */
function flagIndex(own: FlagTable): Map<string, Named> {
  const found = new Map<string, Named>();
  for (const table of [own, GLOBAL_FLAGS]) {
    for (const [name, flag] of Object.entries<Flag>(table)) {
      for (const each of [name, ...(flag.aliases ?? []), ...(flag.short ? [flag.short] : [])]) {
        if (!found.has(each)) found.set(each, { name, flag });
      }
    }
  }
  return found;
}

interface ReadWords {
  given: Set<string>;
  args: readonly string[];
  /** The flag that expects a value next. */
  pending?: Named;
  /** After `--`. */
  ended?: boolean;
}

/** Reads words like the parser; words that it would reject are skipped. */
function readWords(words: readonly string[], flags: ReadonlyMap<string, Named>): ReadWords {
  const given = new Set<string>();
  const args: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '--') return { given, args: [...args, ...words.slice(at + 1)], ended: true };
    if (!word.startsWith('-') || word === '-') {
      args.push(word);
      continue;
    }
    const found = flags.get(word.startsWith('--') ? word.slice(2).replace(/=[\s\S]*$/, '') : word.slice(1, 2));
    if (!found) continue;
    given.add(found.name);
    const carriesValue = word.startsWith('--') ? word.includes('=') : word.length > 2;
    if (carriesValue || found.flag.type === 'boolean') continue;
    if (at === words.length - 1) return { given, args, pending: found };
    at += 1;
  }
  return { given, args };
}
