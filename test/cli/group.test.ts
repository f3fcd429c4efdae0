import { expect, test } from 'vitest';
import { type CommandEntry, defineCommand } from '../../cli/command.ts';
import { defineGroup } from '../../cli/group.ts';
import { commandHelp } from '../../cli/views/help-text.ts';
import { type Outcome, rdctl } from '../helpers/cli.ts';

const JSON_FLAG = { json: { type: 'boolean', summary: 'As JSON' } } as const;

const take = defineCommand({
  name: 'box take',
  summary: 'Take something out',
  usage: 'NAME',
  description: '',
  flags: { ...JSON_FLAG, depth: { type: 'integer', summary: 'How deep' } },
  classic: true,
  async run({ args, flags, globals, io }) {
    io.out(JSON.stringify({ args, flags, globals }));
    return 7;
  },
});
const list = defineCommand({
  name: 'box list',
  aliases: ['ls'],
  summary: 'List what is in it',
  usage: '',
  description: '',
  flags: JSON_FLAG,
  classic: true,
  async run({ io }) {
    io.out('listed');
    return 0;
  },
});
const box = defineGroup({
  name: 'box',
  summary: 'Things in a box',
  description: 'A box holds things.',
  flags: JSON_FLAG,
  classic: true,
  subcommands: [list, take],
});
const strict = defineGroup({
  ...box,
  name: 'strict',
  subcommands: [list],
  async otherwise({ args, io }) {
    io.err(`Error: none of mine: ${args.join(' ')}\n`);
    return 1;
  },
});
const commands: CommandEntry[] = [box, strict].map((group) => ({
  name: group.name,
  summary: group.summary,
  group: 'other',
  load: async () => group,
}));

function call(...argv: string[]): Promise<Outcome> {
  return rdctl(argv, { commands });
}

test('a subcommand gets its own flags and the words after it', async () => {
  const expected = { exit: 7, err: '', out: JSON.stringify({ args: ['a', 'b'], flags: { depth: 3 }, globals: {} }) };
  expect(await call('box', 'take', 'a', '--depth', '3', 'b')).toEqual(expected);
});

test('flags of the group and global flags may come before the subcommand', async () => {
  const { out } = await call('--port', '7', 'box', '--json', '--user', 'take', 'take', 'x');
  expect(JSON.parse(out)).toEqual({ args: ['x'], flags: { json: true }, globals: { port: 7, user: 'take' } });
});

test('an alias works the same', async () => {
  expect(await call('box', 'ls')).toEqual({ exit: 0, out: 'listed', err: '' });
});

test('a group alone prints its help', async () => {
  const help = commandHelp(box, 'linux');
  expect(help).toContain('Usage:\n  rdctl box COMMAND [flags]\n');
  expect(help).toContain('Commands:\n  list, ls  List what is in it\n  take      Take something out\n');
  for (const argv of [['box'], ['box', '--help'], ['box', '-h']]) {
    expect(await call(...argv)).toEqual({ exit: 0, out: help, err: '' });
  }
});

test('an unknown subcommand is an error that suggests the nearest one', async () => {
  const { exit, out, err } = await call('box', 'tak');
  expect({ exit, out }).toEqual({ exit: 1, out: '' });
  expect(err).toContain('Error: unknown command "tak" for "rdctl box"\nDid you mean take?\n');
  expect(err).toContain("Run 'rdctl box --help' for its commands.");
});

test('a group can have its own message', async () => {
  expect(await call('strict')).toEqual({ exit: 1, out: '', err: 'Error: none of mine: \n' });
  expect(await call('strict', 'take')).toEqual({ exit: 1, out: '', err: 'Error: none of mine: take\n' });
  expect((await call('strict', 'list')).exit).toBe(0);
});

test('help and usage of a subcommand show its full name', async () => {
  expect((await call('box', 'take', '--help')).out).toContain('Usage:\n  rdctl box take NAME [flags]\n');
  const { err } = await call('box', 'take', '--deep', '3');
  expect(err).toContain("Run 'rdctl box take --help' for its flags.");
});
