import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { version } from '../../package.json';
import { processTable } from '../../src/os/process-table.ts';
import { PRODUCT } from '../../src/product.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { commandOf, isStandalone } from '../helpers/tool-program.ts';

const tool = builtTool();

function program(argv: string[], env: Record<string, string> = {}, stdin = '') {
  return rdctlProgram(argv, { entry: tool.entry(), env, stdin });
}

test('the version is the same everywhere', () => {
  expect(PRODUCT.version).toBe(version);
});

describe('the built tool', () => {
  if (!isStandalone) {
    test('is an executable that needs no packages', async () => {
      expect(statSync(tool.entry()).mode & 0o111).toBe(0o111);
      expect(readFileSync(tool.entry(), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
      const away = temporaryDirectory();
      execFileSync('cp', ['-r', tool.folder(), join(away, 'dist')]);
      const text = execFileSync(join(away, 'dist', 'rdctl.cjs'), ['version'], { cwd: '/', encoding: 'utf8' });
      expect(text).toBe(`rdctl client version: v${version}, targeting server version: v1\n`);
    });
  }

  test('prints results on stdout and everything else on stderr', async () => {
    expect(await program(['help'])).toMatchObject({ exit: 0, err: '' });
    expect(await program(['foo'])).toMatchObject({ exit: 1, out: '' });
    const home = temporaryDirectory();
    expect(await program(['list-settings'], { RDCTL_HOME: home })).toMatchObject({
      exit: 1,
      out: '',
      err: expect.stringMatching(/^Error: failed to get connection info: open /),
    });
  });

  test('colors a pipe only when forced, and nothing with NO_COLOR', async () => {
    const plan = async (env: Record<string, string>) => {
      const home = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated' };
      return (await program(['plan', '-f', 'examples/moby.yaml'], { ...home, ...env })).out;
    };
    expect(await plan({ FORCE_COLOR: '1', TERM: 'dumb' })).toContain('\u001b[');
    for (const env of [{}, { FORCE_COLOR: '0' }, { FORCE_COLOR: '' }, { FORCE_COLOR: '1', NO_COLOR: '1' }]) {
      expect(await plan(env), JSON.stringify(env)).not.toContain('\u001b[');
    }
  });

  test('loads every command and shows its help', async () => {
    const names = [...(await program(['help'])).out.matchAll(/^ {2}([a-z-]+) {2}/gm)].map((match) => match[1] ?? '');
    expect(names.length).toBeGreaterThan(14);
    for (const name of names) {
      expect(await program([name, '--help'])).toMatchObject({
        exit: 0,
        err: '',
        out: expect.stringContaining(`rdctl ${name}`),
      });
    }
  });

  test('sends what it reads from standard input', async () => {
    await using server = await scriptedServer(() => ({ body: 'ok' }));
    await program(['api', 'x', '--input', '-'], server.env, 'a body');
    expect(server.received[0]?.body).toBe('a body');
  });

  test('succeeds when the reader closes the pipe early', async () => {
    const body = `${'x'.repeat(4 * 1024 * 1024)}\n`;
    await using server = await scriptedServer(() => ({ body }));
    const outcome = await rdctlProgram(['api', '/'], {
      entry: tool.entry(),
      env: server.env,
      onSpawn: (child) => child.stdout?.destroy(),
    });
    expect(outcome).toEqual({ exit: 0, out: '', err: '' });
  });

  test('delivers everything to a slow reader', async () => {
    const body = 'y'.repeat(3 * 1024 * 1024);
    await using server = await scriptedServer(() => ({ body }));
    const { exit, out } = await program(['api', '/'], server.env);
    expect({ exit, length: out.length }).toEqual({ exit: 0, length: body.length + 1 });
  });

  test('a signal cancels a request with the exit code of the signal', async () => {
    let asked: () => void = () => undefined;
    const request = new Promise<void>((done) => {
      asked = done;
    });
    await using server = await scriptedServer(() => {
      asked();
      return { hold: true };
    });
    const outcome = await rdctlProgram(['api', '/'], {
      entry: tool.entry(),
      env: server.env,
      onSpawn: (child) => void request.then(() => child.kill('SIGINT')),
    });
    expect(outcome).toEqual({ exit: 130, out: '', err: 'Interrupted.\n' });
  });
});

describe('the service as a program', () => {
  const simulated = { RDCTL_SIMULATED_LATENCY_MS: '0' };

  test('start returns while the service runs on; shutdown waits until it is gone', async () => {
    const env = { ...simulated, RDCTL_HOME: temporaryDirectory() };
    // `close` needs the end of the child's pipes, which a service holding them would prevent.
    const started = await program(
      ['start', '--driver', 'simulated', '--container-engine=containerd', '--kubernetes.enabled=false', '--wait'],
      env,
    );
    expect(started).toEqual({
      exit: 0,
      out: '',
      err: expect.stringMatching(
        /^Service running: pid \d+, driver simulated \(simulated: no real machine or engine\)\n$/,
      ),
    });
    const { pid } = JSON.parse(readFileSync(join(env.RDCTL_HOME, 'app-engine.json'), 'utf8'));
    try {
      const status = JSON.parse((await program(['api', '/v2/status'], env)).out);
      expect(status).toMatchObject({
        pid,
        converged: true,
        generation: 1,
        backendState: 'DISABLED',
        engine: { name: 'containerd', state: 'running' },
        counters: { restarts: 0 },
      });
      // It has its own session, so that closing the terminal does not end it.
      if (process.platform === 'linux') {
        expect(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[3]).toBe(String(pid));
      }

      expect(await program(['start'], env)).toEqual({ exit: 0, out: '', err: '' });
      expect((await program(['start', '--path', '/x'], env)).err).toMatch(
        /^Error: --path "\/x" specified but Rancher Desktop is already running\nUsage:/,
      );
      expect((await program(['start', '--driver', 'host'], env)).exit).toBe(3);
      expect(await program(['start', '--container-engine=moby', '--wait'], env)).toMatchObject({
        exit: 0,
        out: 'Status: reconfiguring Rancher Desktop to apply changes (this may take a while).\n',
      });
      expect(JSON.parse((await program(['api', '/v2/status'], env)).out)).toMatchObject({
        converged: true,
        generation: 2,
        engine: { name: 'moby', state: 'running' },
      });

      await program(['api', 'backend_state', '-XPUT', '-b', '{"vmState":"STOPPED"}'], env);
      expect((await program(['start', '--wait'], env)).exit).toBe(0);
      expect(JSON.parse((await program(['api', '/v2/status'], env)).out)).toMatchObject({
        power: 'started',
        converged: true,
      });

      const second = await program(['serve'], env);
      expect(second).toMatchObject({ exit: 1, out: '' });
      expect(second.err).toContain(String(pid));
    } finally {
      expect(await program(['shutdown'], env)).toEqual({ exit: 0, out: 'Shutting down.\n', err: '' });
    }
    expect(await processTable.isAlive({ pid })).toBe(false);
    expect(await program(['shutdown'], env)).toEqual({ exit: 0, out: '', err: '' });
  });

  test('start reports why the service ended', async () => {
    const env = { ...simulated, RDCTL_HOME: temporaryDirectory() };
    const wrong = await program(['start', '--driver', 'nonsense'], env);
    expect(wrong).toMatchObject({ exit: 1, out: '', err: expect.stringMatching(/^Error: .*nonsense/) });
    expect(wrong.err).not.toContain('    at ');
    const path = await program(['start', '--path', '/no/such/rdctl'], env);
    expect(path).toMatchObject({
      exit: 1,
      err: expect.stringMatching(/^Error: fork\/exec \/no\/such\/rdctl: no such file/),
    });
  });

  test('start ignores a password for another service in the environment', async () => {
    const env = { ...simulated, RDCTL_HOME: temporaryDirectory() };
    const started = await program(['start', '--driver', 'simulated'], { ...env, RDCTL_PASSWORD: 'of another service' });
    expect(started).toMatchObject({ exit: 0 });
    expect((await program(['shutdown'], env)).exit).toBe(0);
  });

  test('start does not replace a service that refuses the password', async () => {
    const env = { ...simulated, RDCTL_HOME: temporaryDirectory() };
    expect((await program(['start', '--driver', 'simulated'], env)).exit).toBe(0);
    const wrong = await program(['start'], { ...env, RDCTL_PASSWORD: 'wrong' });
    expect(wrong).toMatchObject({ exit: 1, out: '' });
    expect(wrong.err).toMatch(
      /^Error: 401 Unauthorized: .* with the password of RDCTL_PASSWORD\nCorrect RDCTL_PASSWORD/,
    );
    expect((await program(['shutdown'], env)).exit).toBe(0);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('serve stops cleanly on %s', async (signal) => {
    const env = { ...simulated, RDCTL_HOME: temporaryDirectory() };
    const outcome = await new Promise<{ exit: number | null; out: string; err: string }>((done) => {
      const [command, ...words] = commandOf(tool.entry());
      const child = spawn(command, [...words, 'serve', '--driver=simulated'], {
        env: { PATH: process.env.PATH, ...env },
      });
      let out = '';
      let err = '';
      child.stdout.on('data', (part) => {
        out += part;
      });
      child.stderr.on('data', (part) => {
        err += part;
        if (err.includes('listens on')) child.kill(signal);
      });
      child.once('close', (exit) => done({ exit, out, err }));
    });
    expect(outcome).toEqual({
      exit: 0,
      out: '',
      err: expect.stringMatching(
        /^rdctl listens on http:\/\/127\.0\.0\.1:\d+, driver simulated \(simulated: no real machine or engine\)\n$/,
      ),
    });
    expect(() => statSync(join(env.RDCTL_HOME, 'app-engine.json'))).toThrow('ENOENT');
  });
});
