import type { RdError } from '../../src/errors.ts';
import { settingAt } from '../../src/settings/fields.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { pastSetting, pastText } from '../../src/settings/past.ts';
import type { Flag, FlagTable, GivenFlag, GlobalFlags } from '../command.ts';
import { classicMistake, LiteralError, parseBoolean, parseDuration, parseInteger, quote, usage } from './values.ts';

/** Flags of every command, before or after its name. */
export const GLOBAL_FLAGS = {
  'config-path': { type: 'string', summary: 'Connection file to use', placeholder: 'FILE' },
  host: { type: 'string', summary: 'Host of the service (default 127.0.0.1)', placeholder: 'HOST' },
  port: { type: 'integer', port: true, summary: 'Port of the service; overrides the connection file' },
  user: { type: 'string', summary: 'User name; overrides the connection file', placeholder: 'NAME' },
  password: {
    type: 'string',
    summary: 'Password; overrides the connection file. Other users can see it, so prefer RDCTL_PASSWORD',
    placeholder: 'TEXT',
  },
  'password-file': { type: 'string', summary: 'File that contains the password', placeholder: 'FILE' },
  verbose: { type: 'boolean', summary: 'Print more details on stderr, such as the causes of errors' },
} as const satisfies FlagTable;

export const HELP: Flag = { type: 'boolean', short: 'h', summary: 'Show this help' };

/** A parsed command line. */
export interface ParsedArguments {
  flags: Record<string, boolean | number | string | string[]>;
  given: GivenFlag[];
  args: string[];
  globals: GlobalFlags;
  help: boolean;
}

/**
 * Returns the index of the command's name, or of the subcommand's name within a group. Only global flags and the group's flags (`table`) can precede
 * it; an unknown flag there is assumed to take a value, which Rancher Desktop's `rdctl` does as well.
 */
export function commandIndex(argv: readonly string[], table: FlagTable = {}): number | undefined {
  const flags = flagIndex(table);
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? '';
    // The name may come after `--`, like any other word.
    if (word === '--') return at + 1 < argv.length ? at + 1 : undefined;
    if (!word.startsWith('-') || word === '-') return at;
    if (word.includes('=')) continue;
    const flag = word.startsWith('--') ? flags.long.get(word.slice(2)) : flags.short.get(word.slice(-1));
    if (flag?.flag.type !== 'boolean') at++;
  }
  return undefined;
}

/**
 * Parses everything but the subcommand's name. Flags and positionals may interleave; `--` ends the flags; the last
 * occurrence wins. Throws `ERR_USAGE`; an `-h` before the mistake wins.
 */
export function parseArguments(argv: readonly string[], table: FlagTable): ParsedArguments {
  const flags = flagIndex(table);
  const parsed: ParsedArguments = { flags: {}, given: [], args: [], globals: {}, help: false };
  const own: Record<string, unknown> = {};
  const globals: Record<string, unknown> = {};

  function set(entry: NamedFlag, typed: string, text: string): void {
    const value = literal(entry, typed, text);
    if (entry.flag === HELP) {
      parsed.help = value === true;
      return;
    }
    if (Object.hasOwn(table, entry.name)) {
      parsed.given.push({ name: entry.name, typed, value });
      const before = own[entry.name];
      own[entry.name] = entry.flag.type === 'strings' ? [...(Array.isArray(before) ? before : []), value] : value;
    } else {
      globals[entry.name] = value;
    }
  }

  for (let at = 0; at < argv.length && !parsed.help; at++) {
    const word = argv[at] ?? '';
    if (word === '--') {
      parsed.args.push(...argv.slice(at + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      parsed.args.push(word);
    } else if (word.startsWith('--')) {
      const [, name = '', , inline] = /^--([^=]*)(=([\s\S]*))?$/.exec(word) ?? [];
      if (name === '' || name.startsWith('-')) throw classicMistake(`bad flag syntax: ${word}`, `not a flag: ${word}`);
      const entry = flags.long.get(name);
      if (!entry) throw unknownFlag(name, flags);
      if (inline === undefined && entry.flag.type !== 'boolean' && at + 1 >= argv.length) {
        throw classicMistake(`flag needs an argument: --${name}`, `--${name} needs a value`);
      }
      set(entry, name, inline ?? (entry.flag.type === 'boolean' ? 'true' : (argv[++at] ?? '')));
    } else {
      for (let rest = word.slice(1); rest !== ''; ) {
        const letter = rest.charAt(0);
        const entry = flags.short.get(letter);
        if (!entry) throw classicMistake(`unknown shorthand flag: '${letter}' in -${rest}`, `unknown flag: -${letter}`);
        if (rest.length > 2 && rest[1] === '=') {
          set(entry, entry.name, rest.slice(2));
          rest = '';
        } else if (entry.flag.type === 'boolean') {
          set(entry, entry.name, 'true');
          rest = rest.slice(1);
        } else if (rest.length > 1) {
          set(entry, entry.name, rest.slice(1));
          rest = '';
        } else {
          const value = argv[++at];
          if (value === undefined)
            throw classicMistake(`flag needs an argument: '${letter}' in -${rest}`, `-${letter} needs a value`);
          set(entry, entry.name, value);
          rest = '';
        }
      }
    }
  }
  Object.assign(parsed.flags, own);
  Object.assign(parsed.globals, globals);
  return parsed;
}

/** Throws `ERR_USAGE` if a command without positionals gets any. */
export function noArguments(args: readonly string[], command: string, advice?: string): void {
  const [extra] = args;
  if (extra === undefined) return;
  throw classicMistake(
    `unknown command ${quote(extra)} for "rdctl ${command}"`,
    `${command} takes no arguments, and ${quote(extra)} is one`,
    advice,
  );
}

/** Returns the only positional of a command. Throws `ERR_USAGE` for any other number. */
export function oneArgument(args: readonly string[]): string {
  const [only] = args;
  if (only !== undefined && args.length === 1) return only;
  throw classicMistake(
    `accepts 1 arg(s), received ${args.length}`,
    args.length === 0 ? 'an argument is missing' : `only one argument is expected, not ${args.length}`,
  );
}

export interface NamedFlag {
  name: string;
  flag: Flag;
}
/** Flags by every name, including aliases, and by letter. */
export interface FlagIndex {
  long: Map<string, NamedFlag>;
  short: Map<string, NamedFlag>;
}

/** Indexes a command's flags, the global ones and `--help`. A command may redefine a global flag. */
export function flagIndex(own: FlagTable): FlagIndex {
  const found: FlagIndex = { long: new Map(), short: new Map() };
  const add = (name: string, flag: Flag) => {
    const entry = { name, flag };
    for (const long of [name, ...(flag.aliases ?? [])]) if (!found.long.has(long)) found.long.set(long, entry);
    if (flag.short !== undefined && !found.short.has(flag.short)) found.short.set(flag.short, entry);
  };
  for (const table of [own, GLOBAL_FLAGS]) for (const [name, flag] of Object.entries(table)) add(name, flag);
  add('help', HELP);
  return found;
}

function literal({ name, flag }: NamedFlag, typed: string, text: string): boolean | number | string {
  try {
    if (flag.type === 'boolean') return parseBoolean(text);
    if (flag.type === 'integer') return flag.port ? parsePort(text) : parseInteger(text);
    if (flag.type === 'duration') return flag.any ? parseDuration(text) : parsePositive(text);
    if (flag.type === 'string' && flag.values && !flag.values.includes(text)) {
      throw new LiteralError(
        `value ${quote(text)} is not one of the allowed values: [${flag.values.join(' ')}]`,
        `must be ${flag.values.length === 1 ? '' : 'one of '}${flag.values.join(', ')}`,
      );
    }
    return text;
  } catch (cause) {
    if (!(cause instanceof LiteralError)) throw cause;
    const shown = flag.short !== undefined && typed === name ? `-${flag.short}, --${typed}` : `--${typed}`;
    throw classicMistake(
      `invalid argument ${quote(text)} for "${shown}" flag: ${cause.message}`,
      `--${typed} ${quote(text)}: ${cause.plain}`,
    );
  }
}

function parsePort(text: string): number {
  const port = parseInteger(text);
  if (port >= 0 && port <= 65_535) return port;
  const must = 'must be a port from 1 to 65535';
  throw new LiteralError(must, must);
}

/** Parses a positive duration. Anything below a millisecond is invalid. */
function parsePositive(text: string): number {
  const ms = parseDuration(text);
  if (ms >= 1) return ms;
  const must = 'must be longer than 0, such as 30s, 10m or 1h30m';
  throw new LiteralError(must, must);
}

/** A flag that only commands with flags of settings have. */
const ANY_SETTING = 'container-engine.name';

function unknownFlag(name: string, flags: FlagIndex): RdError {
  const past = pastSetting(name);
  const flag = past?.now === undefined ? undefined : settingAt(past.now)?.flag?.name;
  if (past && flags.long.has(flag ?? ANY_SETTING)) {
    const todo = flag === undefined ? 'Leave it out.' : `Use --${flag}.`;
    return usage(`unknown flag: --${name}`, `${past.path} ${pastText(past)}. ${todo}`);
  }
  const shown = [...flags.long]
    .filter(([long, entry]) => long === entry.name && !entry.flag.hidden)
    .map(([long]) => long);
  const close = nearest(name, shown);
  return usage(`unknown flag: --${name}`, close === undefined ? undefined : `Did you mean --${close}?`);
}
