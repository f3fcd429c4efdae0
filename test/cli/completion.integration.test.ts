import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { SETTING_FLAGS } from '../../cli/arguments/flags.gen.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { EXPORTERS } from '../../profiles/formats/index.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl, type Stage } from '../helpers/cli.ts';
import { type Reply, scriptedServer } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const SHOWN = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name);

/** The offered words, and the number at the end. */
async function ask(words: string[], stage: Stage = {}): Promise<{ words: string[]; directive: string }> {
  const env = { RDCTL_HOME: '/nowhere', ...stage.env };
  const { exit, out, err } = await rdctl(['__completeNoDesc', ...words], { ...stage, env });
  expect({ exit, err }).toEqual({ exit: 0, err: '' });
  const lines = out.split('\n');
  expect(lines.pop()).toBe('');
  return { directive: lines.pop() ?? '', words: lines };
}

const offered = async (...words: string[]) => (await ask(words)).words;

describe('the answer', () => {
  test('is one word per line, its description after a tab, and a number at the end', async () => {
    const { out } = await rdctl(['__complete', 'list-s']);
    expect(out).toBe('list-settings\tPrint the current settings as JSON\n:4\n');
    expect((await rdctl(['__completeNoDesc', 'list-s'])).out).toBe('list-settings\n:4\n');
  });

  test('lists every command except hidden ones', async () => {
    expect(await offered('')).toEqual(SHOWN);
    expect(await offered()).toEqual(SHOWN);
    expect(await offered('--verbose', '--port', '1', '')).toEqual(SHOWN);
    expect(await offered('help', '')).toEqual(SHOWN);
    expect(await offered('no-such-command', '')).toEqual([]);
  });

  test('lists the commands of a group', async () => {
    expect(await offered('completion', '')).toEqual(['bash', 'fish', 'powershell', 'zsh']);
    expect(await offered('completion', 'zsh', '')).toEqual([]);
    expect(await offered('completion', 'zsh', '--no')).toEqual(['--no-descriptions']);
    expect(await offered('help', 'completion', 'p')).toEqual(['powershell']);
  });

  test.each(['linux', 'darwin', 'win32'] as const)(
    'lists the flags for settings that exist on %s',
    async (platform) => {
      const { words } = await ask(['set', '--'], { platform });
      const expected = SETTING_FLAGS.filter((row) => !row.hidden && row.platforms.includes(platform)).map(
        ({ name }) => `--${name}`,
      );
      expect(words.filter((word) => expected.includes(word))).toEqual(expected.sort());
      expect(words).toContain('--config-path');
      expect(words).not.toContain('--application.extensions.installed');
    },
  );

  test('lists a flag once, unless it is repeatable', async () => {
    expect(await offered('set', '--kubernetes.enabled', '--kubernetes.e')).toEqual([]);
    expect(await offered('set', '--kubernetes-enabled', '--kubernetes.e')).toEqual([]);
    expect(await offered('apply', '-f', 'x', '--file')).toEqual(['--file']);
    expect(await offered('apply', '-')).toContain('-f');
    expect(await offered('apply', '--hel')).toEqual(['--help']);
    expect(await offered('apply', '-h', '--hel')).toEqual([]);
    expect(await offered('set', '--', '--kub')).toEqual([]);
  });

  test.each(SETTING_FLAGS.flatMap(({ name, values }) => (values ? [[name, values] as const] : [])))(
    'lists the values of --%s',
    async (name, values) => {
      expect(await offered('set', `--${name}`, '')).toEqual(values);
      expect(await offered('start', `--${name}=`)).toEqual(values);
    },
  );

  test.each([
    [['set', '--kubernetes.enabled=t'], ['true']],
    [['set', '--container-engine', 'm'], ['moby']],
    [['set', '--kubernetes.port', ''], []],
    [
      ['version', '-o', ''],
      ['text', 'json', 'yaml'],
    ],
    [['version', '-o', 'j'], ['json']],
    [
      ['create-profile', '--output', ''],
      [...Object.keys(EXPORTERS), 'admx'],
    ],
    [
      ['create-profile', '--hive='],
      ['hklm', 'hkcu'],
    ],
    [['start', '--driver', 'si'], ['simulated']],
    [
      ['--verbose', 'version', '--output='],
      ['text', 'json', 'yaml'],
    ],
  ])('%j', async (words, values) => expect(await offered(...words)).toEqual(values));

  test.each([
    [['apply', '-f', '']],
    [['plan', '--file=ex']],
    [['api', '--input', '']],
    [['--config-path', '']],
    [['create-profile', '--input', '']],
    [['create-profile', '--out-file=']],
    [['apply', '']],
    [['shell', 'ls', '-']],
  ])('%j falls back to file names', async (words) => {
    expect(await ask(words)).toEqual({ words: [], directive: ':0' });
  });

  test('lists settings for explain, and their values', async () => {
    const paths = FIELDS.map(({ path }) => path);
    expect(await offered('create-profile', '--only', '')).toEqual(paths);
    expect(await offered('create-profile', '--only=images', '--except=images.')).toEqual([
      'images.showAll',
      'images.namespace',
    ]);
    expect(await offered('explain', 'kubernetes.')).toEqual(paths.filter((path) => path.startsWith('kubernetes.')));
    expect(await offered('explain', 'kubernetes.port', '')).toEqual([]);
  });
});

describe('lists names known to the service', () => {
  const KNOWN: Record<string, Reply> = {
    '/v1/snapshots': { body: JSON.stringify([{ name: 'before upgrade', description: 'all well' }, { name: 'b' }, 7]) },
    '/v1/extensions': { body: JSON.stringify({ 'org/ext': { version: '1.0' }, 'other/ext': {} }) },
    '/': { body: JSON.stringify(['GET /v1/settings', 'PUT /v1/settings', 'GET /v1/about']) },
  };
  const against = async (words: string[], replies: Record<string, Reply> = KNOWN) => {
    await using server = await scriptedServer(({ path }) => replies[path]);
    const outcome = await ask(words, { env: server.env });
    return { ...outcome, asked: server.received.map(({ method, path }) => `${method} ${path}`) };
  };

  test.each([
    [['snapshot', 'restore', ''], 'GET /v1/snapshots', ['before upgrade', 'b']],
    [['snapshot', 'delete', 'be'], 'GET /v1/snapshots', ['before upgrade']],
    [['extension', 'uninstall', 'org'], 'GET /v1/extensions', ['org/ext']],
    [['api', '/v1/'], 'GET /', ['/v1/settings', '/v1/about']],
  ])('%j', async (words, asked, expected) => {
    expect(await against(words)).toMatchObject({ words: expected, directive: ':4', asked: [asked] });
  });

  test('uses connection flags from the line', async () => {
    await using server = await scriptedServer(({ path }) => KNOWN[path]);
    const flags = ['--port', String(server.port), '--user=u', '--password=p'];
    expect((await ask([...flags, 'snapshot', 'restore', ''])).words).toEqual(['before upgrade', 'b']);
    expect((await ask(['snapshot', 'restore', ...flags, ''])).words).toEqual(['before upgrade', 'b']);
  });

  test('is empty and silent without a service, or when the answer cannot be used', async () => {
    expect(await ask(['snapshot', 'restore', ''])).toEqual({ words: [], directive: ':4' });
    for (const reply of [{ status: 500 }, { body: 'x' }, { body: '{}' }, { body: 'null' }, { drop: true } as const]) {
      const { words } = await against(['snapshot', 'restore', ''], { '/v1/snapshots': reply });
      expect(words).toEqual([]);
    }
    expect((await against(['set', '--kubernetes.version', ''])).asked).toEqual([]);
  });
});

describe('the script', () => {
  test.each(['bash', 'zsh', 'fish', 'powershell'])('for %s', async (shell) => {
    const described = await rdctl(['completion', shell]);
    expect(described).toMatchObject({ exit: 0, err: '' });
    expect(described.out).toMatch(/\b__complete\b/);
    const plain = await rdctl(['completion', shell, '--no-descriptions']);
    expect(plain.out).toBe(described.out.replaceAll(/\b__complete\b/g, '__completeNoDesc'));
    expect(await rdctl(['completion', '--no-descriptions', shell])).toEqual(plain);
  });

  test('without a shell prints help, for an unknown shell fails', async () => {
    const help = await rdctl(['completion']);
    expect(help).toMatchObject({ exit: 0, err: '' });
    expect(help.out).toContain('  powershell');
    const { exit, out, err } = await rdctl(['completion', 'tcsh']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toContain('Error: unknown command "tcsh" for "rdctl completion"\n');
    expect((await rdctl(['completion', 'bash', 'x'])).err).toContain('unknown command "x" for "rdctl completion bash"');
  });
});

describe('in a real shell', () => {
  const tool = builtTool();

  /** A directory with files, `rdctl` on the PATH, and a service with snapshots. */
  async function stage<T>(work: (env: Record<string, string>, cwd: string) => Promise<T>): Promise<T> {
    const names = ['before upgrade', 'c:one'];
    await using server = await scriptedServer(() => ({ body: JSON.stringify(names.map((name) => ({ name }))) }));
    const folder = temporaryDirectory();
    const cwd = join(folder, 'work');
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'team.yaml'), '');
    symlinkSync(tool.entry(), join(folder, 'rdctl'));
    const PATH = [folder, process.env.PATH].join(delimiter);
    return await work({ PATH, HOME: folder, ZDOTDIR: folder, TERM: 'dumb', LC_ALL: 'C.UTF-8', ...server.env }, cwd);
  }

  function output(argv: string[], options: { env: Record<string, string>; cwd: string; input?: string }) {
    const [program = '', ...args] = argv;
    const child = spawn(program, args, { env: options.env, cwd: options.cwd, stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.end(options.input ?? '');
    return text(child.stdout);
  }

  const missing = (program: string) => spawnSync(program, ['--version']).error !== undefined;

  /** Types each line in a terminal, presses Tab, and has the shell print the resulting words. */
  async function typed(shell: string, setUp: string, lines: readonly string[]): Promise<string[]> {
    const presses = lines.map((line) => `${line}\t\x01show \n`);
    const show = "show() { printf '{'; printf '[%s]' \"$@\"; printf '}\\n'; }";
    const input = [`${show}; ${setUp}\n`, ...presses, 'exit\n'].join('');
    const said = await stage((env, cwd) => output(['script', '-qec', shell, '/dev/null'], { env, cwd, input }));
    return [...said.matchAll(/\{\[(.*?)\]\}/g)].map((match) => match[1] ?? '').filter((words) => !words.includes('%s'));
  }

  const LINES: readonly (readonly [string, string])[] = [
    ['rdctl compl', 'rdctl][completion'],
    ['rdctl set --container-engine.name mo', 'rdctl][set][--container-engine.name][moby'],
    ['rdctl set --container-engine.name=mo', 'rdctl][set][--container-engine.name=moby'],
    ['rdctl set --kubernetes.enabled=f', 'rdctl][set][--kubernetes.enabled=false'],
    ['rdctl snapshot restore be', 'rdctl][snapshot][restore][before upgrade'],
    ['rdctl snapshot restore "be', 'rdctl][snapshot][restore][before upgrade'],
    ['rdctl snapshot restore c:', 'rdctl][snapshot][restore][c:one'],
    ['rdctl plan -f te', 'rdctl][plan][-f][team.yaml'],
    ['rdctl set te', 'rdctl][set][te'],
  ];

  test.for([
    ['bash --norc --noprofile -i', 'source <(rdctl completion bash)'],
    ['zsh -f -i', 'autoload -Uz compinit; compinit -u -D; source <(rdctl completion zsh)'],
  ])('%s', async ([shell = '', setUp = ''], { skip }) => {
    const program = shell.split(' ')[0] ?? '';
    const needed = ['script', program].filter(missing);
    if (needed.length > 0) return skip(`not installed: ${needed.join(', ')}`);
    const words = await typed(
      shell,
      setUp,
      LINES.map(([line]) => line),
    );
    expect(words).toEqual(LINES.map(([, expected]) => expected));
  });

  test('fish', async ({ skip }) => {
    if (missing('fish')) return skip('not installed: fish');
    const lines = LINES.map(([line]) => `echo '{'; complete -C '${line}'; echo '}'`);
    const script = ['rdctl completion fish | source', ...lines].join('\n');
    const said = await stage((env, cwd) => output(['fish', '--no-config', '-c', script], { env, cwd }));
    const answers = [...said.matchAll(/\{\n([^}]*)\}/g)].map((match) => (match[1] ?? '').replace(/\t.*/g, '').trim());
    expect(answers).toEqual([
      'completion',
      'moby',
      '--container-engine.name=moby',
      '--kubernetes.enabled=false',
      'before upgrade',
      'before upgrade',
      'c:one',
      'team.yaml',
      '',
    ]);
  });
});
