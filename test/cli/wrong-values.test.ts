import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GLOBAL_FLAGS } from '../../cli/arguments/arguments.ts';
import type { Command, Flag } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { checkEach } from '../helpers/check-each.ts';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Words of another language's library for flags, and the name of another product. */
const FOREIGN =
  /strconv|\btime: |invalid syntax|invalid argument "|invalid duration|flag needs an argument|unknown shorthand|bad flag syntax|arg\(s\)|unknown command "[^"]*" for|required flag\(s\)|allowed values: \[|Rancher Desktop/;

/** What no flag of that type takes. */
const WRONG: Readonly<Record<Flag['type'], readonly string[]>> = {
  boolean: ['', 'maybe', '2'],
  integer: ['', 'x', '1.5', '99999999999999999999'],
  duration: ['', '5', '5y', 'x', '99999999999h', '0', '-5s', '1ns'],
  string: ['\u0001', ''],
  strings: [],
};

async function ownCommands(): Promise<Command[]> {
  const loaded = await Promise.all(COMMANDS.map(({ load }) => load()));
  const all = (command: Command): Command[] => [command, ...(command.subcommands ?? []).flatMap(all)];
  return loaded.flatMap(all).filter(({ classic }) => !classic);
}

/** Wrong command lines that are refused before anything is done. */
function linesOf({ name, flags, subcommands }: Command): string[][] {
  const words = name.split(' ');
  const given = Object.entries<Flag>({ ...GLOBAL_FLAGS, ...flags }).flatMap(([flag, { type, short, ...rest }]) => {
    const values = type === 'string' && !('values' in rest && rest.values) ? [] : WRONG[type];
    const wrong = values.flatMap((value) => [
      [`--${flag}=${value}`],
      ...(short === undefined || type === 'boolean' ? [] : [[`-${short}`, value]]),
    ]);
    const alone = type === 'boolean' ? [] : [[`--${flag}`], ...(short === undefined ? [] : [[`-${short}`]])];
    return [...wrong, ...alone];
  });
  const lines = [
    ...given,
    ['--no-such-flag'],
    ['-Z'],
    ['--=x'],
    ['---x'],
    ...(subcommands ? [['no-such-command']] : []),
  ];
  return lines.map((line) => [...words, ...line]);
}

describe('commands that are ours alone', async () => {
  const commands = (await ownCommands()).map((command) => [command.name, command] as const);

  test('say in our words what is wrong with a flag', async () => {
    const cwd = temporaryDirectory();
    const env = { HOME: cwd, RDCTL_HOME: join(cwd, 'home') };
    let lines = 0;
    await checkEach(commands, async (command) => {
      for (const line of linesOf(command)) {
        lines += 1;
        const { exit, out, err } = await rdctl(line, { env, cwd });
        const shown = `$ rdctl ${line.join(' ')}\n${err}`;
        expect(exit, shown).toBe(1);
        expect(shown).toMatch(/\nError: .*\n(?:.*\n)*Usage:\n {2}rdctl /);
        expect(`${err}${out}`, shown).not.toMatch(FOREIGN);
      }
    });
    expect(lines).toBeGreaterThan(500);
  });

  test('say in our words that an argument is missing', async () => {
    const cwd = temporaryDirectory();
    const env = { HOME: cwd, RDCTL_HOME: join(cwd, 'home') };
    const needy = commands.filter(([, { usage, subcommands }]) => !subcommands && /^[A-Z]/.test(usage));
    expect(needy.length).toBeGreaterThan(5);
    await checkEach(needy, async ({ name }) => {
      const { exit, out, err } = await rdctl(name.split(' '), { env, cwd });
      expect(exit, err).toBe(1);
      expect(err).toMatch(/^Error: .*\n(?:.*\n)*Usage:\n {2}rdctl /m);
      expect(`${err}${out}`).not.toMatch(FOREIGN);
    });
  });

  test('say in our words what is wrong with an argument', async () => {
    const cwd = temporaryDirectory();
    const env = { HOME: cwd, RDCTL_HOME: join(cwd, 'home') };
    await checkEach(commands, async ({ name }) => {
      const { out, err } = await rdctl([...name.split(' '), 'no-such', 'no-such-either', 'nor-this'], { env, cwd });
      expect(`${err}${out}`).not.toMatch(FOREIGN);
      expect(err).not.toContain('This is a bug');
    });
  });
});

test.each([
  [['logs', '-n', 'x'], '--lines "x": must be a whole number'],
  [['apply', '--timeout', '5'], '--timeout "5": must be a duration with a unit, such as 30s, 10m or 1h30m'],
  [['up', '--timeout', '0'], '--timeout "0": must be longer than 0, such as 30s, 10m or 1h30m'],
  [['rollback', '--plan', '--timeout=-1s'], '--timeout "-1s": must be longer than 0, such as 30s, 10m or 1h30m'],
  [['down', 'now'], 'down takes no arguments, and "now" is one'],
  [['plan', '-o', 'xml'], '--output "xml": must be one of text, json, yaml'],
  [['status', '--watch=perhaps'], '--watch "perhaps": must be true or false'],
  [['up', '--timeout'], '--timeout needs a value'],
  [['image', 'list', '-Z'], 'unknown flag: -Z'],
])('%j: %s', async (argv, message) => {
  expect(await rdctl(argv)).toMatchObject({ exit: 1, err: expect.stringContaining(`Error: ${message}\nUsage:`) });
});
