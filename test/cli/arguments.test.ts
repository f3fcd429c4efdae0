import { describe, expect, test } from 'vitest';
import { commandIndex, noArguments, oneArgument, parseArguments } from '../../cli/arguments/arguments.ts';
import { SETTING_FLAGS } from '../../cli/arguments/flags.gen.ts';
import { SETTING_FLAG_TABLE } from '../../cli/arguments/setting-flags.ts';
import type { FlagTable } from '../../cli/command.ts';
import { RdError } from '../../src/errors.ts';

const TABLE: FlagTable = {
  method: { type: 'string', short: 'X', summary: '' },
  body: { type: 'string', short: 'b', summary: '' },
  output: { type: 'string', short: 'o', summary: '', values: ['text', 'json'] },
  input: { type: 'string', summary: '' },
  count: { type: 'integer', summary: '' },
  after: { type: 'duration', summary: '' },
  all: { type: 'boolean', short: 'a', summary: '', aliases: ['everything'] },
  file: { type: 'strings', short: 'f', summary: '' },
  secret: { type: 'string', summary: '', hidden: true },
};

function failure(argv: string[]): RdError {
  try {
    parseArguments(argv, TABLE);
  } catch (error) {
    if (error instanceof RdError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('grammar', () => {
  test.each<[string[], Record<string, unknown>, string[]]>([
    [['--method', 'post'], { method: 'post' }, []],
    [['--method=post'], { method: 'post' }, []],
    [['--method='], { method: '' }, []],
    [['--method=a=b'], { method: 'a=b' }, []],
    [['--method', '--body'], { method: '--body' }, []],
    [['-Xpost'], { method: 'post' }, []],
    [['-X', 'post'], { method: 'post' }, []],
    [['-X=post'], { method: 'post' }, []],
    [['-X='], { method: '=' }, []],
    [['-aXpost'], { all: true, method: 'post' }, []],
    [['-a=false'], { all: false }, []],
    [['--all'], { all: true }, []],
    [['--all=F'], { all: false }, []],
    [['--everything'], { all: true }, []],
    [['--all', '--everything=0'], { all: false }, []],
    [['--all', 'false'], { all: true }, ['false']],
    [['--count', '1', '--count', '2'], { count: 2 }, []],
    [['--count', '-1'], { count: -1 }, []],
    [['--after', '1h30m'], { after: 5_400_000 }, []],
    [['-f', 'a', '--file=b'], { file: ['a', 'b'] }, []],
    [['x', '-a', 'y'], { all: true }, ['x', 'y']],
    [['-a', '--', '-b', '--all'], { all: true }, ['-b', '--all']],
    [['-', '--input', '-'], { input: '-' }, ['-']],
    [['--output', 'json'], { output: 'json' }, []],
  ])('%j', (argv, flags, args) => {
    const parsed = parseArguments(argv, TABLE);
    expect(parsed.flags).toEqual(flags);
    expect(parsed.args).toEqual(args);
  });

  test('given flags keep their order and the name that was typed', () => {
    const { given } = parseArguments(['--everything', '-X', 'a', '--all=0'], TABLE);
    expect(given).toEqual([
      { name: 'all', typed: 'everything', value: true },
      { name: 'method', typed: 'method', value: 'a' },
      { name: 'all', typed: 'all', value: false },
    ]);
  });

  test.each([[['-h']], [['--help']], [['-ah']], [['x', '--help', '--nonsense']]])('%j asks for help', (argv) => {
    expect(parseArguments(argv, TABLE).help).toBe(true);
  });
  test('a value that looks like --help is a value', () => {
    expect(parseArguments(['--input', '--help'], TABLE)).toMatchObject({ help: false, flags: { input: '--help' } });
  });
});

describe('errors', () => {
  test.each([
    [['--x'], 'unknown flag: --x'],
    [['--x=1'], 'unknown flag: --x'],
    [['--__proto__'], 'unknown flag: --__proto__'],
    [['--constructor=1'], 'unknown flag: --constructor'],
    [['-Z'], "unknown shorthand flag: 'Z' in -Z"],
    [['-aZb'], "unknown shorthand flag: 'Z' in -Zb"],
    [['--input'], 'flag needs an argument: --input'],
    [['-X'], "flag needs an argument: 'X' in -X"],
    [['-aX'], "flag needs an argument: 'X' in -X"],
    [['--=x'], 'bad flag syntax: --=x'],
    [['---x'], 'bad flag syntax: ---x'],
    [['--count=abc'], 'invalid argument "abc" for "--count" flag: strconv.ParseInt: parsing "abc": invalid syntax'],
    [['--port', 'abc'], 'invalid argument "abc" for "--port" flag: strconv.ParseInt: parsing "abc": invalid syntax'],
    [
      ['--all=maybe'],
      'invalid argument "maybe" for "-a, --all" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    [
      ['--everything=x'],
      'invalid argument "x" for "--everything" flag: strconv.ParseBool: parsing "x": invalid syntax',
    ],
    [['--after=5'], 'invalid argument "5" for "--after" flag: time: missing unit in duration "5"'],
    [
      ['-o', 'xml'],
      'invalid argument "xml" for "-o, --output" flag: value "xml" is not one of the allowed values: [text json]',
    ],
  ])('%j: %s', (argv, message) => {
    expect(failure(argv)).toMatchObject({ code: 'ERR_USAGE', message });
  });

  test('suggests a similar name, but never a hidden one', () => {
    expect(failure(['--outptu']).advice).toBe('Did you mean --output?');
    expect(failure(['--prot']).advice).toBe('Did you mean --port?');
    expect(failure(['--secre']).advice).toBeUndefined();
    expect(failure(['--nothing-like-it']).advice).toBeUndefined();
  });

  test('positionals that a command does not accept', () => {
    expect(() => noArguments(['false'], 'set')).toThrow('unknown command "false" for "rdctl set"');
    expect(() => oneArgument([])).toThrow('accepts 1 arg(s), received 0');
    expect(() => noArguments([], 'set')).not.toThrow();
  });
});

describe('global flags', () => {
  const GLOBALS = ['--config-path', 'f', '--host=h', '--port', '6107', '--user', 'u', '--password', 'p', '--verbose'];
  test.each([
    ['before', [...GLOBALS, 'api', '/']],
    ['after', ['api', '/', ...GLOBALS]],
    ['between', ['--port', '6107', 'api', ...GLOBALS, '/']],
  ])('%s the subcommand', (_where, argv) => {
    const at = commandIndex(argv);
    expect(argv[at ?? -1]).toBe('api');
    const { globals, args, given } = parseArguments(
      argv.filter((_, each) => each !== at),
      TABLE,
    );
    expect(globals).toEqual({ 'config-path': 'f', host: 'h', port: 6107, user: 'u', password: 'p', verbose: true });
    expect(args).toEqual(['/']);
    expect(given).toEqual([]);
  });

  test.each<[string[], number | undefined]>([
    [[], undefined],
    [['--help'], undefined],
    [['-h', 'set'], 1],
    [['--verbose', 'set'], 1],
    [['--verbose=true', 'set'], 1],
    [['--port=1', 'set'], 1],
    [['--'], undefined],
    [['--', 'set'], 1],
    [['--unknown', 'set'], undefined],
    [['--unknown=1', 'set'], 1],
  ])('%j has its subcommand at %s', (argv, at) => expect(commandIndex(argv)).toBe(at));
});

describe('generated flags', () => {
  const SAMPLES = { boolean: ['true', true], integer: ['7', 7], string: ['text', 'text'] } as const;
  const names = SETTING_FLAGS.filter(({ type }) => type in SAMPLES).flatMap((row) =>
    [row.name, ...row.aliases].map((name) => [name, row] as const),
  );

  test('there are 47 as in the compatible tool, plus a few for lists and maps', () => {
    expect(SETTING_FLAGS.filter(({ type }) => type in SAMPLES)).toHaveLength(47);
    expect(SETTING_FLAGS.filter(({ type }) => !(type in SAMPLES)).map(({ path }) => path)).toEqual(
      expect.arrayContaining(['containerEngine.allowedImages.patterns', 'diagnostics.mutedChecks', 'WSL.integrations']),
    );
  });

  test.each(names)('--%s', (name, row) => {
    const [text, value] = SAMPLES[row.type as keyof typeof SAMPLES];
    const expected = [{ name: row.name, typed: name, value }];
    expect(parseArguments([`--${name}=${text}`], SETTING_FLAG_TABLE).given).toEqual(expected);
    const apart = row.type === 'boolean' ? [`--${name}`] : [`--${name}`, text];
    expect(parseArguments(apart, SETTING_FLAG_TABLE).given).toEqual(expected);
  });
});
