import { DRIVER_NAMES } from '../../src/product.ts';
import { GLOBAL_FLAGS } from '../arguments/arguments.ts';
import type { Command, Flag } from '../command.ts';
import type { CommandEntry } from '../commands.ts';
import { lastWord } from '../help.ts';
import type { CompletionContext } from './ask.ts';

/** A completion candidate. */
export interface Offer {
  word: string;
  about?: string;
}

/** Fallback of the shell when there are no, or too few, candidates. */
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
}

/** Commands that take known names as arguments, with the maximum count. */
const ARGUMENTS: Readonly<Record<string, readonly [keyof Sources, number]>> = {
  'snapshot restore': ['snapshots', 1],
  'snapshot delete': ['snapshots', 1],
  'extension uninstall': ['extensions', 1],
  api: ['endpoints', 1],
  explain: ['settings', 1],
};
/** Commands that take files as arguments. */
const FILE_ARGUMENTS = ['apply', 'import-profile', 'profile check', 'profile upgrade', 'shell'];

/** The candidates that start with the prefix. */
export async function offersFor(
  question: CompletionContext,
  platform: NodeJS.Platform,
  commands: readonly CommandEntry[],
  sources: Sources,
): Promise<Offers> {
  const { offers, otherwise } = await all(question, platform, commands, sources);
  return { offers: offers.filter(({ word }) => word.startsWith(question.prefix)), otherwise };
}

async function all(
  question: CompletionContext,
  platform: NodeJS.Platform,
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

/** Visible flags in help order; one that was already given only if it is repeatable. */
function flagOffers(
  { command, given, prefix }: Extract<CompletionContext, { what: 'flag' }>,
  platform: NodeJS.Platform,
): Offer[] {
  const own = Object.entries<Flag>(command?.flags ?? {});
  const shared = Object.entries<Flag>(GLOBAL_FLAGS).filter(([name]) => !command || !Object.hasOwn(command.flags, name));
  return [...own.sort(byName), ...shared, HELP].flatMap(([name, flag]) => {
    if (flag.hidden || !(flag.platforms?.includes(platform) ?? true)) return [];
    if (given.has(name) && flag.type !== 'strings') return [];
    const long = { word: `--${name}`, about: flag.summary };
    // Short flags are offered only after a single dash.
    return flag.short && prefix === '-' ? [long, { word: `-${flag.short}`, about: flag.summary }] : [long];
  });
}

const HELP: [string, Flag] = ['help', { type: 'boolean', short: 'h', summary: 'Show this help' }];

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
