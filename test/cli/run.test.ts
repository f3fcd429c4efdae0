import { describe, expect, test } from 'vitest';
import type { CommandEntry } from '../../cli/command.ts';
import { type Command, defineCommand, type FlagTable } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { RdError } from '../../src/errors.ts';
import { rdctl } from '../helpers/cli.ts';

/** A table with one command that does what the test says. */
function only<T extends FlagTable>(
  options: Partial<Command<T>> & { run: Command<T>['run'] },
): { commands: CommandEntry[] } {
  const command = {
    name: 'go',
    summary: 'Go',
    usage: '[FILE]',
    description: '',
    flags: {} as T,
    classic: false,
    ...options,
  };
  return { commands: [{ name: 'go', summary: 'Go', group: 'other', load: async () => command }] };
}

function throwing(error: unknown, classic = false) {
  return only({
    classic,
    run: async () => {
      throw error;
    },
  });
}

describe('finding the command', () => {
  test.each([[['help']], [['--help']], [['-h']], [['--verbose', '-h']]])('%j prints the help', async (argv) => {
    const { exit, out, err } = await rdctl(argv);
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).toContain('rdctl COMMAND [flags]');
  });

  test('an unknown command', async () => {
    expect(await rdctl(['foo'])).toEqual({
      exit: 1,
      out: '',
      err: 'Error: unknown command "foo" for "rdctl"\nRun \'rdctl --help\' for usage.\n',
    });
    expect((await rdctl(['--port', '1', 'aply', '-f', 'x'])).err).toBe(
      'Error: unknown command "aply" for "rdctl"\n\nDid you mean this?\n\tapply\n\nRun \'rdctl --help\' for usage.\n',
    );
    expect(await rdctl(['constructor'])).toMatchObject({ exit: 1, err: expect.not.stringContaining('Did you mean') });
    // What other tools call it.
    expect((await rdctl(['ps'])).err).toContain('\nDid you mean this?\n\tshell docker ps\n');
    expect((await rdctl(['stop'])).err).toContain('\nDid you mean this?\n\tdown\n');
    expect((await rdctl(['--', 'foo'])).err).toContain('unknown command "foo"');
    expect((await rdctl(['--', 'version'])).exit).toBe(0);
    expect((await rdctl(['--'])).out).toContain('rdctl COMMAND');
  });

  test('help for a command, in three ways', async () => {
    const outcomes = [await rdctl(['help', 'set']), await rdctl(['set', '--help']), await rdctl(['-h', 'set'])];
    expect(outcomes[0]).toMatchObject({ exit: 0, err: '' });
    expect(outcomes[0]?.out).toContain('rdctl set [flags]');
    expect(outcomes[1]).toEqual(outcomes[0]);
    expect(outcomes[2]).toEqual(outcomes[0]);
  });

  test('an unknown help topic is not a failure', async () => {
    const { exit, out, err } = await rdctl(['help', 'foo']);
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err).toMatch(/^Unknown help topic \[`foo`\]\nUsage:\n/);
  });

  test('an error before any command shows the usage of the tool', async () => {
    expect((await rdctl(['--nonsense'])).err).toMatch(/^Error: unknown flag: --nonsense\nUsage:\n {2}rdctl COMMAND/);
  });

  test('a command receives flags, positionals and globals, and its exit code is returned', async () => {
    const seen: unknown[] = [];
    const { exit } = await rdctl(
      ['--user=u', 'go', '-n', '3', 'x', '--verbose'],
      only({
        flags: { number: { type: 'integer', short: 'n', summary: '' } },
        run: async ({ flags, args, globals }) => {
          seen.push(flags, args, globals);
          return 2;
        },
      }),
    );
    expect(exit).toBe(2);
    expect(seen).toEqual([{ number: 3 }, ['x'], { user: 'u', verbose: true }]);
  });
});

describe('failures', () => {
  const error = new RdError('ERR_PROFILE_INVALID', 'the profile is not valid', {
    advice: 'Correct it.',
    details: ['a.yaml:1:2: unknown key', 'a.yaml:3:4: wrong type'],
  });

  test('print message, details and advice, with the exit code of the catalog', async () => {
    expect(await rdctl(['go'], throwing(error))).toEqual({
      exit: 3,
      out: '',
      err: 'Error: the profile is not valid\na.yaml:1:2: unknown key\na.yaml:3:4: wrong type\nCorrect it.\n',
    });
  });

  test('of classic commands exit 1, except for a wrong target', async () => {
    expect((await rdctl(['go'], throwing(error, true))).exit).toBe(1);
    expect((await rdctl(['go'], throwing(new RdError('ERR_DEADLINE', 'late'), true))).exit).toBe(1);
    expect((await rdctl(['go'], throwing(new RdError('ERR_WRONG_TARGET', 'other'), true))).exit).toBe(3);
  });

  test('print usage only for usage errors', async () => {
    const usage = await rdctl(['go'], throwing(new RdError('ERR_USAGE', 'which file?')));
    expect(usage).toMatchObject({
      exit: 1,
      err: "Error: which file?\nUsage:\n  rdctl go [FILE]\n\nRun 'rdctl go --help' for its flags.\n\n",
    });
    expect((await rdctl(['go'], throwing(error))).err).not.toContain('Usage');
  });

  test('that are defects print one line, and a stack on request', async () => {
    const defect = new TypeError('x is not a function');
    const short = await rdctl(['go'], throwing(defect));
    expect(short).toMatchObject({ exit: 1, out: '' });
    expect(short.err).toMatch(/^Error: x is not a function\n.*--verbose.*\n$/);
    const long = await rdctl(['go', '--verbose'], throwing(defect));
    expect(long.err).toContain('run.test.ts');
  });

  test('print the causes of an expected failure with --verbose', async () => {
    const disk = new RdError('ERR_IO', 'the disk is gone', { cause: new Error('EIO: i/o error') });
    const failure = new RdError('ERR_IO', 'cannot read', { cause: disk, advice: 'Look at it.' });
    expect((await rdctl(['go'], throwing(failure))).err).toBe('Error: cannot read\nLook at it.\n');
    expect((await rdctl(['--verbose', 'go'], throwing(failure))).err).toBe(
      'Error: cannot read\nLook at it.\ncaused by: the disk is gone\ncaused by: EIO: i/o error\n',
    );
    const repeating = new RdError('ERR_IO', 'cannot read: the disk is gone', { cause: new Error('the disk is gone') });
    expect((await rdctl(['--verbose', 'go'], throwing(repeating))).err).toBe('Error: cannot read: the disk is gone\n');
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('%s ends a waiting command with %d', async (reason, exit) => {
    for (const act of [
      (signal: AbortSignal) => signal.throwIfAborted(),
      () => {
        throw new DOMException('This operation was aborted', 'AbortError');
      },
      () => {
        throw new RdError('ERR_CANCELLED', 'the request was canceled');
      },
    ]) {
      const controller = new AbortController();
      const waiting = only({
        run: async ({ io }) => {
          controller.abort(reason);
          act(io.signal);
          return 0;
        },
      });
      expect(await rdctl(['go'], { ...waiting, signal: controller.signal })).toEqual({
        exit,
        out: '',
        err: 'Interrupted.\n',
      });
    }
  });

  test('a canceled command may report what it leaves behind', async () => {
    const controller = new AbortController();
    controller.abort('SIGINT');
    const left = new RdError('ERR_CANCELLED', 'Interrupted while waiting.', { advice: 'The service goes on.' });
    expect(await rdctl(['go'], { ...throwing(left), signal: controller.signal })).toMatchObject({
      exit: 130,
      err: 'Error: Interrupted while waiting.\nThe service goes on.\n',
    });
  });
});

describe('the table of commands', () => {
  test.each(COMMANDS.map((entry) => [entry.name, entry] as const))('%s', async (name, entry) => {
    const command = await entry.load();
    expect(command).toMatchObject({ name, summary: entry.summary });
    expect(command.summary).toMatch(/^[A-Z].*[^.]$/);
    for (const [flag, { summary, aliases = [] }] of Object.entries(command.flags)) {
      expect([flag, summary.length > 0, aliases.includes(flag)]).toEqual([flag, true, false]);
    }
    const shorts = Object.values(command.flags).flatMap(({ short }) => short ?? []);
    expect(new Set(shorts).size).toBe(shorts.length);
    expect(defineCommand(command)).toBe(command);
  });
});
