import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { applicationRequest } from '../../cli/arguments/application-arguments.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl, rdctlProgram } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

describe('arguments of the application', () => {
  test.each<[string[], unknown]>([
    [[], undefined],
    [['--no-modal-dialogs'], undefined],
    [['--no-modal-dialogs=false'], undefined],
    [
      [
        '--containerEngine.name',
        'docker',
        '--virtualMachine.memoryInGB',
        '6',
        '--kubernetes.enabled=false',
        '--no-modal-dialogs',
      ],
      { containerEngine: { name: 'docker' }, virtualMachine: { memoryInGB: 6 }, kubernetes: { enabled: false } },
    ],
    [['--kubernetes.enabled'], { kubernetes: { enabled: true } }],
    [['--kubernetes.enabled', '--images.showAll'], { kubernetes: { enabled: true }, images: { showAll: true } }],
    [['--kubernetes.enabled', 'false'], { kubernetes: { enabled: false } }],
    [['--kubernetes.version='], { kubernetes: { version: '' } }],
    [['--kubernetes.version', '--x'], { kubernetes: { version: '--x' } }],
    [['--kubernetes.version', '1.30'], { kubernetes: { version: '1.30' } }],
    [['--kubernetes.port=6444', '--kubernetes.port', '6445'], { kubernetes: { port: 6445 } }],
    [['--inspect', 'main.js', '--enable-logging=1', '--kubernetes.port=1'], { kubernetes: { port: 1 } }],
    [
      ['--containerEngine.allowedImages.patterns', '["a"]'],
      { containerEngine: { allowedImages: { patterns: ['a'] } } },
    ],
    [['--diagnostics.mutedChecks={"A":true}'], { diagnostics: { mutedChecks: { A: true } } }],
    [['--version=3', '--kubernetes.zipperhead'], undefined],
  ])('%j', (words, settings) => expect(applicationRequest(words).settings).toEqual(settings));

  test.each<[string[], boolean]>([
    [[], false],
    [['--no-modal-dialogs'], true],
    [['--no-modal-dialogs=true'], true],
    [['--kubernetes.enabled', '--no-modal-dialogs', 'true'], true],
    [['--no-modal-dialogs', 'false'], false],
    [['--no-modal-dialogs', '--no-modal-dialogs=false'], false],
  ])('%j sets no-modal-dialogs to %j', (words, expected) =>
    expect(applicationRequest(words).noModalDialogs).toBe(expected),
  );

  test.each([
    [['--kubernetes.enabled=false', '--unknown'], 'unknown argument "--unknown"'],
    [['--kubernetes.enabled=false', 'word'], 'unknown argument "word"'],
    [['--no-modal-dialogs', '--kubernetes-enabled'], 'unknown argument "--kubernetes-enabled"'],
    [['--kubernetes.enabled=yes'], 'the argument "--kubernetes.enabled" takes true or false, not "yes"'],
    [['--kubernetes.enabled=1'], 'the argument "--kubernetes.enabled" takes true or false, not "1"'],
    [['--kubernetes.port', 'x'], 'the argument "--kubernetes.port" takes a number, not "x"'],
    [['--kubernetes.port'], 'no value for the argument "--kubernetes.port"'],
    [['--no-modal-dialogs=maybe'], 'the argument "--no-modal-dialogs" takes true or false, not "maybe"'],
    [['--kubernetes=1'], `Can't overwrite existing setting "--kubernetes=1"`],
    [['--not.ours', '--kubernetes.options', '33'], `Can't overwrite existing setting "--kubernetes.options"`],
    [['--diagnostics.mutedChecks=true'], 'the argument "--diagnostics.mutedChecks" takes a JSON object, not "true"'],
  ])('%j is refused', (words, message) => expect(() => applicationRequest(words)).toThrow(message));

  test('override other settings and leave the rest unchanged', () => {
    const others = { kubernetes: { port: 1, enabled: true } };
    expect(applicationRequest(['--kubernetes.port=2'], others).settings).toEqual({
      kubernetes: { port: 2, enabled: true },
    });
    expect(others.kubernetes.port).toBe(1);
    expect(applicationRequest([], {}).settings).toEqual({});
  });
});

describe('serve', () => {
  const serve = (env: Record<string, string>, ...argv: string[]) => rdctl(['serve', '--port=1', ...argv], { env });

  test.each([
    [['--containerEngine.name', 'beefalo'], 'Invalid value for "containerEngine.name": <"beefalo">; must be one of'],
    [['--kubernetes.port=0'], 'Invalid value for "kubernetes.port"'],
    [['--kubernetes.enabled=false', '--unknown'], 'unknown flag: --unknown'],
    [['--kubernetes.port', 'x'], 'the argument "--kubernetes.port" takes a number'],
    [['--as-application', '--', '--kubernetes.enabled', 'x'], 'unknown argument "x"'],
    [['word'], 'unknown command "word" for "rdctl serve"'],
  ])('%j does not start', async (argv, message) => {
    const home = temporaryDirectory();
    const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated' };
    const { exit, out, err } = await rdctl(['serve', ...argv], { env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: /);
    expect(err).toContain(message);
    expect(() => readFileSync(join(home, 'app-engine.json'))).toThrow('ENOENT');
  });

  test('refuses to start with a changed value for a locked setting, but accepts the locked value', async () => {
    const locked = join(temporaryDirectory(), 'locked.json');
    writeFileSync(locked, '{"version":19,"kubernetes":{"enabled":false}}');
    const start = (word: string) => {
      const { settings } = applicationRequest([word]);
      return startService({ ...(settings ? { settings } : {}), policies: { locked } });
    };
    await expect(start('--kubernetes.enabled=true')).rejects.toThrow('field "kubernetes.enabled" is locked');
    await expect(start('--kubernetes.enabled=false')).resolves.toBeDefined();
  });

  test('does not start a second service in the same home', async () => {
    const { env } = await startService();
    const { exit, err } = await serve(env, '--kubernetes.enabled=true');
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: /);
  });
});

/** One that starts a service does not exit by itself. */
function killAtEnd(child: ChildProcess): void {
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  child.once('exit', () => clearTimeout(timer));
}

describe('started as the application', () => {
  const tool = builtTool();

  /** Starts an executable as `start --path` of the original client does; resolves once it listens or has exited. */
  async function launch(executable: string, argv: string[], home: string) {
    const env = {
      PATH: process.env.PATH,
      RDCTL_HOME: home,
      RDCTL_DRIVER: 'simulated',
      RDCTL_SIMULATED_LATENCY_MS: '0',
    };
    const child = spawn(executable, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    let err = '';
    const listening = new Promise<void>((resolve) => {
      child.stderr.on('data', (part: Buffer) => {
        err += part.toString();
        if (err.includes('listens on')) resolve();
      });
    });
    const command = (...words: string[]) => rdctlProgram(words, { entry: tool.entry(), env });
    onTestFinished(async () => {
      await command('shutdown');
      child.kill('SIGKILL');
    });
    const exit = await Promise.race([listening.then(() => undefined), ended]);
    return { exit, err, ended, command };
  }

  test('runs the service with the given settings and saves them', async () => {
    const home = temporaryDirectory();
    // Clients look for the application under a name of their own.
    const executable = join(temporaryDirectory(), 'rancher-desktop');
    symlinkSync(tool.application(), executable);
    const argv = [
      '--containerEngine.name',
      'docker',
      '--kubernetes.version',
      '1.30.2',
      '--kubernetes.enabled=false',
      '--no-modal-dialogs',
    ];
    const { exit, command, ended } = await launch(executable, argv, home);
    expect(exit).toBeUndefined();
    expect(JSON.parse((await command('api', 'transient_settings')).out)).toMatchObject({ noModalDialogs: true });
    const settings = JSON.parse((await command('list-settings')).out);
    expect(settings).toMatchObject({
      containerEngine: { name: 'moby' },
      kubernetes: { enabled: false, version: '1.30.2' },
    });
    expect((await command('start', '--wait')).exit).toBe(0);
    expect(JSON.parse((await command('status', '-o', 'json')).out)).toMatchObject({ power: 'started' });
    const stored = JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'));
    expect(stored).toMatchObject({ kubernetes: { enabled: false, version: '1.30.2' } });
    expect(await command('shutdown')).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
    expect(await ended).toBe(0);
  });

  test.each([
    [['--help'], 'rdctl-app [--SETTING=VALUE ...]'],
    [['-h'], 'rdctl-app [--SETTING=VALUE ...]'],
    [['--no-sandbox', '--help'], 'rdctl-app [--SETTING=VALUE ...]'],
    [['--kubernetes.enabled', '--help'], 'rdctl-app [--SETTING=VALUE ...]'],
    [['--version'], /^rdctl-app v\d/],
  ])('%j prints its output, and neither starts nor changes anything', async (argv, text) => {
    const user = temporaryDirectory();
    for (const RDCTL_COMPAT of ['', 'rancher-desktop']) {
      const entry = tool.application();
      const env = { HOME: user, RDCTL_DRIVER: 'simulated', RDCTL_COMPAT };
      const ended = await rdctlProgram(argv, { entry, env, onSpawn: killAtEnd });
      const expected = typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text);
      expect(ended).toEqual({ exit: 0, out: expected, err: '' });
    }
    expect(readdirSync(user)).toEqual([]);
  });

  test('treats a value that looks like a flag as a value', () => {
    expect(applicationRequest(['--kubernetes.version', '--help'])).toEqual({
      settings: { kubernetes: { version: '--help' } },
      noModalDialogs: false,
    });
  });

  test('fails on a bad argument', async () => {
    const executable = tool.application();
    const { exit, err } = await launch(executable, ['--containerEngine.name', 'beefalo'], temporaryDirectory());
    expect(exit).toBe(1);
    expect(err).toContain('Invalid value for "containerEngine.name"');
  });

  test('can be used by rdctl start', async () => {
    const home = temporaryDirectory();
    const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const command = (...words: string[]) => rdctlProgram(words, { entry: tool.entry(), env });
    onTestFinished(async () => void (await command('shutdown')));
    const started = await command('start', '--path', tool.application(), '--images.show-all');
    expect(started).toMatchObject({ exit: 0, out: '' });
    expect(JSON.parse((await command('list-settings')).out)).toMatchObject({ images: { showAll: true } });
  });
});
