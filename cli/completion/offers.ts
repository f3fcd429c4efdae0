import { DRIVER_NAMES } from '../../src/product.ts';
import type { Platform } from '../../src/settings/field.ts';
import { commandIndex, type FlagIndex, flagIndex, GLOBAL_FLAGS, HELP, type NamedFlag } from '../arguments/arguments.ts';
import type { Command, CommandEntry, Flag } from '../command.ts';
import { subcommandOf } from '../group.ts';
import { lastWord } from '../usage-line.ts';

/** The kind of word at the cursor. */
export type CompletionContext =
  /** The argument of an unknown command. */
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
    const [, dashes = '', name = '', text] = /^(--?)([^=]*)=([\s\S]*)$/.exec(prefix) ?? [];
    const found = dashes === '--' ? flags.long.get(name) : flags.short.get(name);
    if (found && text !== undefined) return { what: 'value', ...found, prefix: text };
  }
  if (prefix.startsWith('-') && !read.ended && !command?.passesWords) {
    return { what: 'flag', command, given: read.given, prefix };
  }
  if (!command) return { what: noneNamed ? 'command' : 'nothing', prefix };
  if (command.subcommands && read.args.length === 0) return { what: 'command', of: command, prefix };
  return { what: 'argument', command, before: read.args, prefix };
}

interface ReadWords {
  given: Set<string>;
  args: readonly string[];
  /** The flag that expects a value next. */
  pending?: NamedFlag;
  /** Whether `--` has ended the flags. */
  ended?: boolean;
}

/** Reads words like the parser; words that it would reject are skipped. */
function readWords(words: readonly string[], flags: FlagIndex): ReadWords {
  const given = new Set<string>();
  const args: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '--') return { given, args: [...args, ...words.slice(at + 1)], ended: true };
    if (!word.startsWith('-') || word === '-') {
      args.push(word);
      continue;
    }
    const found = word.startsWith('--')
      ? flags.long.get(word.slice(2).replace(/=[\s\S]*$/, ''))
      : flags.short.get(word.slice(1, 2));
    if (!found) continue;
    given.add(found.name);
    const carriesValue = word.startsWith('--') ? word.includes('=') : word.length > 2;
    if (carriesValue || found.flag.type === 'boolean') continue;
    if (at === words.length - 1) return { given, args, pending: found };
    at += 1;
  }
  return { given, args };
}

/** A completion candidate. */
export interface Offer {
  word: string;
  about?: string;
}

/** Completion by the shell when there are no, or too few, candidates. */
type CompletionFallback = 'nothing' | 'files' | 'directories';

export interface Offers {
  offers: Offer[];
  otherwise: CompletionFallback;
}

/** Candidates that need a service or the schema; loaded on demand. */
export interface Sources {
  snapshots(): Promise<Offer[]>;
  extensions(): Promise<Offer[]>;
  endpoints(): Promise<Offer[]>;
  settings(): Promise<Offer[]>;
  logs(): Promise<Offer[]>;
}

/** Commands that take known names as arguments, with the maximum count. */
const ARGUMENTS: Readonly<Record<string, readonly [keyof Sources, number]>> = {
  'snapshot restore': ['snapshots', 1],
  'snapshot delete': ['snapshots', 1],
  'extension uninstall': ['extensions', 1],
  api: ['endpoints', 1],
  explain: ['settings', 1],
  logs: ['logs', 1],
};
/** Commands that take files as arguments. */
const FILE_ARGUMENTS = ['apply', 'import-profile', 'profile check', 'profile upgrade', 'shell', 'cp'];

/** Returns the candidates that start with the prefix. */
export async function offersFor(
  question: CompletionContext,
  platform: Platform,
  commands: readonly CommandEntry[],
  sources: Sources,
): Promise<Offers> {
  const { offers, otherwise } = await all(question, platform, commands, sources);
  return { offers: offers.filter(({ word }) => word.startsWith(question.prefix)), otherwise };
}

async function all(
  question: CompletionContext,
  platform: Platform,
  commands: readonly CommandEntry[],
  sources: Sources,
): Promise<Offers> {
  switch (question.what) {
    case 'nothing':
      return { offers: [], otherwise: 'nothing' };
    case 'command':
      return { offers: question.of ? subcommands(question.of) : commandOffers(commands), otherwise: 'nothing' };
    case 'flag':
      return { offers: flagOffers(question, platform), otherwise: 'nothing' };
    case 'value':
      return valueOffers(question.name, question.flag, sources);
    case 'argument':
      return argumentOffers(question.command, question.before, commands, sources);
  }
}

function commandOffers(commands: readonly CommandEntry[]): Offer[] {
  return commands.filter(({ hidden }) => !hidden).map(({ name, summary }) => ({ word: name, about: summary }));
}

function subcommands({ subcommands: below = [] }: Command): Offer[] {
  return below.map(({ name, summary }) => ({ word: lastWord(name), about: summary }));
}

/** Returns the visible flags in help order; a given one only if it is repeatable. */
function flagOffers(
  { command, given, prefix }: Extract<CompletionContext, { what: 'flag' }>,
  platform: Platform,
): Offer[] {
  const own = Object.entries<Flag>(command?.flags ?? {});
  const shared = Object.entries<Flag>(GLOBAL_FLAGS).filter(([name]) => !command || !Object.hasOwn(command.flags, name));
  return [...own.sort(byName), ...shared, ['help', HELP] as const].flatMap(([name, flag]) => {
    if (flag.hidden || !(flag.platforms?.includes(platform) ?? true)) return [];
    if (given.has(name) && flag.type !== 'strings') return [];
    const long = { word: `--${name}`, about: flag.summary };
    // Short flags are offered only after a single dash.
    return flag.short && prefix === '-' ? [long, { word: `-${flag.short}`, about: flag.summary }] : [long];
  });
}

function byName([a]: [string, Flag], [b]: [string, Flag]): number {
  return a < b ? -1 : 1;
}

async function valueOffers(name: string, flag: Flag, sources: Sources): Promise<Offers> {
  const words = (list: readonly string[]): Offers => ({
    offers: list.map((word) => ({ word })),
    otherwise: 'nothing',
  });
  if (flag.type === 'boolean') return words(['true', 'false']);
  if (flag.type === 'integer' || flag.type === 'duration') return words([]);
  if (flag.type === 'string' && (flag.values ?? flag.offers)) return words(flag.values ?? flag.offers ?? []);
  if (flag.type === 'strings' && flag.offers) return words(flag.offers);
  if (name === 'driver') return words(DRIVER_NAMES);
  if (flag.type === 'strings' && flag.placeholder === 'SETTING') {
    return { offers: await sources.settings(), otherwise: 'nothing' };
  }
  if (flag.placeholder?.startsWith('FILE')) return { offers: [], otherwise: 'files' };
  if (flag.placeholder === 'DIR') return { offers: [], otherwise: 'directories' };
  return words([]);
}

async function argumentOffers(
  { name }: Command,
  before: readonly string[],
  commands: readonly CommandEntry[],
  sources: Sources,
): Promise<Offers> {
  if (FILE_ARGUMENTS.includes(name)) return { offers: [], otherwise: 'files' };
  if (name === 'help') return { offers: await helpTopics(before, commands), otherwise: 'nothing' };
  const [source, most] = Object.hasOwn(ARGUMENTS, name) ? (ARGUMENTS[name] ?? []) : [];
  const wanted = source !== undefined && before.length < (most ?? 0);
  return { offers: wanted ? await sources[source]() : [], otherwise: 'nothing' };
}

async function helpTopics([topic, ...more]: readonly string[], commands: readonly CommandEntry[]): Promise<Offer[]> {
  if (topic === undefined) return commandOffers(commands);
  const command = more.length === 0 ? await commands.find(({ name }) => name === topic)?.load() : undefined;
  return command ? subcommands(command) : [];
}
