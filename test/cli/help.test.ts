import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Command } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { reportFailure } from '../../cli/errors.ts';
import { commandHelp, rootHelp } from '../../cli/views/help-text.ts';
import { ERRORS, type ErrorCode, RdError } from '../../src/errors.ts';
import type { Platform } from '../../src/settings/field.ts';
import { checkEach } from '../helpers/check-each.ts';
import { fakeIo } from '../helpers/cli.ts';

const CLASSIC = [
  'extension',
  'serve',
  'start',
  'shutdown',
  'list-settings',
  'set',
  'api',
  'version',
  'info',
  'help',
  'shell',
  'create-profile',
  'completion',
  'reset',
  'factory-reset',
  'setup',
  'paths',
];

async function loaded(name: string): Promise<Command> {
  const entry = COMMANDS.find((each) => each.name === name);
  if (!entry) throw new Error(`no command ${name}`);
  return entry.load();
}

async function helpOf(name: string, platform: Platform = 'linux'): Promise<string> {
  return commandHelp(await loaded(name), platform);
}

function flagsOf(help: string): string[] {
  const own = help.slice(0, help.indexOf('Global flags:'));
  return [...own.matchAll(/^ {2}(?:-\w, | {4})--(\S+)/gm)].map((match) => match[1] ?? '');
}

test('the help of the tool', async () => {
  await expect(rootHelp(COMMANDS)).toMatchFileSnapshot('../golden/help/rdctl.txt');
});

test.each(CLASSIC)('the help of %s', async (name) => {
  await expect(await helpOf(name)).toMatchFileSnapshot(`../golden/help/${name}.txt`);
});

test.each(['linux', 'darwin', 'win32'] as const)(
  'the help of every command fits a terminal and lists flags alphabetically on %s',
  async (platform) => {
    const commands = COMMANDS.map(({ name }) => [name, name] as const);
    await checkEach(commands, async (name) => {
      const help = await helpOf(name, platform);
      expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
      const flags = flagsOf(help);
      expect(flags).toEqual([...flags].sort());
    });
  },
);

test('does not list hidden flags and flags of other platforms', async () => {
  const linux = flagsOf(await helpOf('set'));
  expect(linux).toContain('virtual-machine.memory-in-gb');
  expect(linux).not.toContain('virtual-machine.type');
  expect(linux).not.toContain('container-engine');
  expect(linux).not.toContain('application.extensions.allowed.enabled');
  expect(flagsOf(await helpOf('set', 'darwin'))).toContain('virtual-machine.type');
  expect(flagsOf(await helpOf('set', 'win32'))).toContain('experimental.virtual-machine.proxy.port');
  expect(flagsOf(await helpOf('serve'))).not.toContain('power');
});

test('every command that is listed has an example', async () => {
  const leaves = (command: Command): Command[] => command.subcommands?.flatMap(leaves) ?? [command];
  const listed = await Promise.all(COMMANDS.filter(({ hidden }) => !hidden).map(({ load }) => load()));
  const without = listed.flatMap(leaves).filter((command) => !/^ {2}.*\brdctl /m.test(command.description));
  expect(without.map(({ name }) => name)).toEqual([]);
});

test('the reference page lists every command', () => {
  const reference = readFileSync('docs/commands.md', 'utf8');
  expect(
    COMMANDS.map(({ name }) => name).filter((name) => !/NoDesc$/.test(name) && !reference.includes(`\`${name}`)),
  ).toEqual([]);
});

describe('exit codes', () => {
  const [, section = ''] = readFileSync('docs/commands.md', 'utf8').split('\n## Exit codes\n');
  const text = section.split('\n## ', 1).join('');
  const table = new Map(
    [...text.matchAll(/^\| (\d+) \|(.*)\|(.*)\|$/gm)].map(([, code, classic = '', others = '']) => [
      Number(code),
      { classic: classic.trim() !== '', others: others.trim() !== '' },
    ]),
  );

  test('of every error are in the table, for both kinds of commands', async () => {
    const codes = { classic: new Set([0]), others: new Set([0, 2]) };
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const error = new RdError(code, 'no');
      const exitOf = (command: Command) => reportFailure({ error, command, verbose: false }, fakeIo());
      // Only death by a signal has this one.
      if (code === 'ERR_CANCELLED') continue;
      codes.classic.add(exitOf(await loaded('set')));
      codes.others.add(exitOf(await loaded('apply')));
    }
    const documented = (kind: 'classic' | 'others') => [...table].filter(([, row]) => row[kind]).map(([code]) => code);
    expect([...codes.classic].sort()).toEqual(documented('classic'));
    expect([...codes.others].sort()).toEqual(documented('others'));
  });

  test('match the compatible tool for the listed commands', async () => {
    const loadedAll = await Promise.all(COMMANDS.map(({ name }) => loaded(name)));
    const [, list = ''] = /The classic commands are ([^:]*):/.exec(text) ?? [];
    const own = ['__complete', '__completeNoDesc', 'internal'];
    const classic = loadedAll.filter((command) => command.classic || command.name === 'snapshot');
    expect([...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name)).toEqual(
      classic
        .map(({ name }) => name)
        .filter((name) => !own.includes(name))
        .sort(),
    );
  });
});
