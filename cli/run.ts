import type { Connection } from '../src/client/connection.ts';
import { discover } from '../src/client/discovery.ts';
import { PRODUCT } from '../src/product.ts';
import { nearest } from '../src/settings/nearest.ts';
import { commandIndex, parseArguments } from './arguments/arguments.ts';
import { inWordsOf, quote } from './arguments/values.ts';
import type { Command, CommandEntry, FlagTable, GlobalFlags, Io } from './command.ts';
import { COMMANDS } from './commands.ts';
import { reportFailure } from './errors.ts';
import { subcommandOf } from './group.ts';

/** Runs one command line and returns the exit code. Never throws: every failure is printed. */
export async function run(
  argv: readonly string[],
  io: Io,
  commands: readonly CommandEntry[] = COMMANDS,
): Promise<number> {
  let command: Command | undefined;
  let verbose = argv.includes('--verbose');
  let json = asksForJson(argv);
  let output = io;
  try {
    const at = commandIndex(argv);
    if (at === undefined) return await rootCommand(argv, io, commands);
    const name = argv[at] ?? '';
    const entry = commands.find((each) => each.name === name);
    if (!entry) return unknownCommand(name, io, commands);
    const found = resolveCommand(await entry.load(), without(argv, at));
    command = found.command;
    if (command.deprecated) io.err(`Command ${quote(command.name)} is deprecated, ${command.deprecated}\n`);
    const parsed = command.passesWords
      ? { ...parseArguments(argv.slice(0, at), {}), args: argv.slice(at + 1) }
      : parseArguments(found.argv, command.flags);
    verbose = parsed.globals.verbose ?? false;
    json = parsed.flags.output === 'json' || (parsed.flags.output === 'yaml' && isConverted(command));
    if (parsed.help) {
      const { commandHelp } = await import('./views/help-text.ts');
      io.say(commandHelp(command, io.platform, io.columns));
      return 0;
    }
    const { flags, given, args, globals } = parsed;
    if (json && flags.output === 'yaml') {
      output = await (await import('./views/yaml-output.ts')).yamlOutput(io);
      flags.output = 'json';
    }
    return await command.run({
      ...{ flags, given, args, globals, commands },
      io: output,
      connect: () => connect(globals, output, command?.endsService !== true),
    });
  } catch (error) {
    return reportFailure({ error: inWordsOf(command, error), command, verbose, json }, output);
  }
}

/** Resolves the command through its groups; returns it with the remaining words. */
function resolveCommand(command: Command, argv: readonly string[]): { command: Command; argv: readonly string[] } {
  const at = command.subcommands && commandIndex(argv, command.flags);
  const next = at === undefined ? undefined : subcommandOf(command, argv[at] ?? '');
  return at === undefined || !next ? { command, argv } : resolveCommand(next, without(argv, at));
}

function without(argv: readonly string[], at: number): string[] {
  return [...argv.slice(0, at), ...argv.slice(at + 1)];
}

function isConverted({ flags: { output } }: Command): boolean {
  return output?.type === 'string' && output.yamlFromJson === true;
}

/** Whether an invalid command line, whose flags were not parsed, requests JSON. */
function asksForJson(argv: readonly string[]): boolean {
  return argv.some(
    (word, at) => /^(?:-o=?|--output=)json$/.test(word) || (/^(?:-o|--output)$/.test(word) && argv[at + 1] === 'json'),
  );
}

/** Runs `rdctl` without a command: shows the running service, or the drivers that can run here. */
async function rootCommand(argv: readonly string[], io: Io, commands: readonly CommandEntry[]): Promise<number> {
  const { args, flags, help } = parseArguments(argv, ROOT_FLAGS);
  const [word] = args;
  if (word !== undefined) return unknownCommand(word, io, commands);
  if (flags.version) return run(['version'], io, commands);
  if (help || argv.length > 0) io.say((await import('./views/help-text.ts')).rootHelp(commands, io.columns));
  // Looking for a service starts none.
  else
    io.say(
      await (await import('./first-minute.ts')).firstMinute({ io, globals: {}, connect: () => connect({}, io, false) }),
    );
  return 0;
}

const ROOT_FLAGS = { version: { type: 'boolean', summary: 'Show the version' } } as const satisfies FlagTable;

/** Words of other tools, and the command to use instead. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ['install', 'up'],
  ['run', 'up'],
  ['stop', 'down'],
  ['restart', 'down, then up'],
  ['uninstall', 'reset --factory'],
  ['config', 'list-settings'],
  ['delete', 'reset'],
  ['destroy', 'reset'],
  ['remove', 'reset'],
  ['rm', 'reset'],
  ['create', 'init'],
  ['new', 'init'],
  ['check', 'validate'],
  ['lint', 'validate'],
  ['update', 'upgrade'],
  ['undo', 'rollback'],
  ['ssh', 'shell'],
  ['list', 'list-settings'],
  ['ls', 'list-settings'],
  ['docker', 'shell docker'],
  ['exec', 'shell docker exec'],
  ['images', 'shell docker images'],
  ['kubectl', 'shell kubectl'],
  ['ps', 'shell docker ps'],
]);

function unknownCommand(name: string, io: Io, commands: readonly CommandEntry[]): number {
  const close = nearest(
    name,
    commands.filter(({ hidden }) => !hidden).map((entry) => entry.name),
  );
  const meant = MEANT.get(name) ?? close;
  const hint = meant === undefined ? '' : `\nDid you mean this?\n\t${meant}\n\n`;
  io.err(`Error: unknown command ${quote(name)} for "rdctl"\n${hint}Run 'rdctl --help' for usage.\n`);
  return 1;
}

async function connect(globals: GlobalFlags, io: Io, mayStart: boolean): Promise<Connection> {
  const find = () => discover(globals, io.env, io.platform, { signal: () => io.signal });
  const connection = await find().catch(async (error: unknown) => {
    const { startForUse } = await import('../src/client/session/activation.ts');
    if (mayStart && (await startForUse(error, globals, io))) return find();
    const { rediscover } = await import('../src/client/session/missing.ts');
    return rediscover(find, error, globals, io);
  });
  // A command that ends the service may end one of any version.
  if (mayStart && connection.revision !== PRODUCT.revision) {
    const { otherVersion } = await import('../src/client/session/other-version.ts');
    const other = await otherVersion(connection, globals, io);
    if (other) throw other;
  }
  return connection;
}
