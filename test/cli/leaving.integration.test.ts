import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import { SERVICE_STOP_MS } from '../../src/client/home-service.ts';
import { isStaying, LOOK_MS, waitForExit, waitForOtherService } from '../../src/client/session/exit.ts';
import { askService } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { launchService } from '../../src/client/session/launch.ts';
import { missingService, rediscover } from '../../src/client/session/missing.ts';
import { RdError } from '../../src/errors.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { processTable } from '../../src/os/process-table.ts';
import { PRODUCT } from '../../src/product.ts';
import { type Lock, lockHome } from '../../src/state/home-lock.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { fakeIo, rdctl, rdctlProgram } from '../helpers/cli.ts';
import { scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { createVirtualClock } from '../reconcile/virtual-clock.ts';

// Questions about a home whose service is starting or stopping. This process holds the lock of the home, in the state under test.

const NOT_THERE = new RdError('ERR_NOT_RUNNING', 'open app-engine.json: no such file or directory');

function newHome(): {
  home: string;
  env: Record<string, string>;
  io: ReturnType<typeof fakeIo>;
  take(): Promise<Lock>;
} {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
  const io = fakeIo({ env });
  return {
    home,
    env,
    io,
    async take() {
      const lock = await lockHome(homeOf(io).serviceLock, home);
      onTestFinished(() => lock.release());
      return lock;
    },
  };
}

const connection = (port: number, password = 'p'): Connection => ({
  host: '127.0.0.1',
  user: 'user',
  port,
  password,
  foreign: false,
  reached: { by: 'word' },
});

describe('a connection file that is missing at the first look', () => {
  test('is read again when the lock says that a service runs', async () => {
    const { io, take } = newHome();
    await (await take()).update({ port: 1, announced: true });
    expect(await rediscover(async () => connection(1), NOT_THERE, {}, io)).toEqual(connection(1));
  });

  test('is an error when it is missing while the lock says so before and after', async () => {
    const { io, take } = newHome();
    await (await take()).update({ port: 1, announced: true });
    await expect(rediscover(() => Promise.reject(NOT_THERE), NOT_THERE, {}, io)).rejects.toMatchObject({
      code: 'ERR_CONNECTION_SETTINGS',
      message: expect.stringContaining('although a service is running for this home'),
    });
  });

  test('is no error when the service ends in the meantime', async () => {
    const { io, take } = newHome();
    const lock = await take();
    await lock.update({ port: 1, announced: true });
    const find = async () => {
      await lock.update({ ending: true });
      throw NOT_THERE;
    };
    await expect(rediscover(find, NOT_THERE, {}, io)).rejects.toMatchObject({
      code: 'ERR_NOT_RUNNING',
      advice: expect.stringContaining('is ending'),
    });
  });

  test('of a service that was starting: that service is asked', async () => {
    const { io, take } = newHome();
    const lock = await take();
    let looks = 0;
    const connect = async () => {
      looks += 1;
      if (looks > 1) return connection(1);
      await lock.update({ port: 1, announced: true });
      throw NOT_THERE;
    };
    expect(await askService({ connect, globals: {}, io }, async ({ port }) => port)).toEqual({ answer: 1 });
  });
});

describe('a service that started after an old connection file was read', () => {
  test('is asked instead', async () => {
    const { io, take } = newHome();
    await (await take()).update({ port: 2, announced: true });
    for (const code of ['ERR_NOT_RUNNING', 'ERR_UNAUTHORIZED', 'ERR_CONNECTION', 'ERR_DEADLINE'] as const) {
      const files = [connection(2, 'old')];
      const connect = async () => files.pop() ?? connection(2, 'new');
      const ask = async ({ password }: Connection) => {
        if (password === 'old') throw new RdError(code, 'the last one');
        return password;
      };
      expect(await askService({ connect, globals: {}, io }, ask)).toEqual({ answer: 'new' });
    }
  });

  test('is ruled out when the file is unchanged', async () => {
    const { io, take } = newHome();
    await (await take()).update({ port: 2, announced: true });
    const caller = { connect: async () => connection(2), globals: {}, io };
    const error = new RdError('ERR_UNAUTHORIZED', 'no');
    await expect(missingService(error, caller, connection(2))).rejects.toBe(error);
  });
});

test.each([
  ['ERR_NOT_RUNNING', 'connection refused: no service listens on 127.0.0.1:1'],
  ['ERR_CONNECTION', 'Get "http://127.0.0.1:1/v2/status": EOF'],
] as const)(
  'a service that was killed a moment ago is not there, although its process still is: %s',
  async (code, text) => {
    const { io, take } = newHome();
    const lock = await take();
    await lock.update({ port: 1, announced: true });
    // It ends between the failed request and the second look.
    const caller = { connect: async () => lock.release().then(() => connection(1)), globals: {}, io };
    expect(await missingService(new RdError(code, text), caller, connection(1))).toEqual({ kind: 'none' });
  },
);

describe('a service that will not stay', () => {
  const caller = (io: ReturnType<typeof fakeIo>) => ({ connect: async () => connection(1), globals: {}, io });

  test('is ending, works for another command, or has already ended', async () => {
    const { io, take } = newHome();
    const client = createClient(connection(1), () => Promise.reject(NOT_THERE));
    expect(await isStaying(client, caller(io))).toBe(false);
    const lock = await take();
    await lock.update({ port: 1, announced: true });
    expect(await isStaying(client, caller(io))).toBe(true);
    expect(await isStaying(client, caller(io), process.pid)).toBe(true);
    expect(await isStaying(client, caller(io), process.pid + 1)).toBe(false);
    await lock.update({ port: 2 });
    expect(await isStaying(client, caller(io))).toBe(false);
    await lock.update({ port: 1, idle: true });
    expect(await isStaying(client, caller(io))).toBe(false);
    await lock.update({ idle: false, ending: true });
    expect(await isStaying(client, caller(io))).toBe(false);
    expect(await isStaying(client, { ...caller(io), globals: { port: 1 } })).toBe(true);
  });

  /** Time that passes only while everything sleeps. `onLook` follows each pause between two looks, which are `times` as long as requested. */
  function clock(onLook: () => Promise<void>, times = 1): Clock {
    const { now, sleep } = createVirtualClock({ auto: true });
    const began = now();
    return {
      now: () => now() - began,
      async sleep(ms, signal) {
        const isLook = ms === LOOK_MS;
        await sleep(isLook ? times * ms : ms, signal);
        if (isLook) await onLook();
      },
    };
  }

  test.each([
    [{ ending: true }, /^notice: The last service \(pid \d+\) is ending; waiting for it to exit\.\n$/],
    [{ idle: true }, /^notice: Another command needs the backend off \(service \d+\); waiting for it to exit\.\n$/],
  ])('is waited for: %j', async (facts, notice) => {
    const { io, take } = newHome();
    const lock = await take();
    await lock.update(facts);
    let looks = 0;
    await waitForOtherService(io, {
      clock: clock(async () => {
        looks += 1;
        if (looks === 3) await lock.release();
      }),
    });
    expect(looks).toBe(3);
    expect(io.text.err).toMatch(notice);
  });

  test('is waited for at most as long as the caller has time, silently if requested', async () => {
    const { io, take } = newHome();
    await (await take()).update({ ending: true });
    const time = clock(async () => undefined);
    const options = { clock: time, leftMs: () => 100 - time.now(), quiet: true };
    await expect(waitForOtherService(io, options)).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      message: `the last service (pid ${process.pid}) did not exit in time`,
    });
    expect(io.text.err).toBe('');
  });

  test('is waited for at most as long as a stop can take, and a terminal shows the elapsed time', async () => {
    const { home, env, take } = newHome();
    await (await take()).update({ ending: true });
    const io = fakeIo({ env, progress: true });
    const time = clock(async () => undefined, 20);
    const seconds = SERVICE_STOP_MS / 1000;
    await expect(waitForOtherService(io, { clock: time })).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      message: `the last service (pid ${process.pid}) was asked to stop but is still running after ${seconds} s`,
      advice: expect.stringMatching(
        `^Check the logs in ${home}/logs\\. .*\\bkill -9 ${process.pid}\\b.*\\brdctl start\\b`,
      ),
    });
    expect(time.now()).toBe(SERVICE_STOP_MS);
    const drawn = io.text.err.split('\r\u001b[2K');
    expect(drawn[0]).toMatch(/waiting for it to exit\.\n.* 1 s of at most 180 s …$/);
    expect(drawn).toHaveLength(seconds);
    expect(drawn.at(-1)).toBe('');
  });

  test('is waited for without a limit while it works for a command', async () => {
    const { io, take } = newHome();
    const lock = await take();
    await lock.update({ idle: true });
    const time = clock(async () => {
      if (time.now() > 2 * SERVICE_STOP_MS) await lock.release();
    }, 20);
    await waitForOtherService(io, { clock: time });
    expect(time.now()).toBeGreaterThan(2 * SERVICE_STOP_MS);
  });

  test('does not block a start forever', async () => {
    const { io, take } = newHome();
    await (await take()).update({ ending: true });
    const time = clock(async () => undefined, 20);
    const input = { io, globals: {}, power: 'started' as const, quiet: true, clock: time };
    await expect(launchService(input)).rejects.toMatchObject({
      code: 'ERR_DEADLINE',
      message: expect.stringContaining('was asked to stop but is still running'),
    });
    expect(io.text.err).toBe('');
  });
});

test('a service that is ending is no stale one: every command says so', async () => {
  const { home, env, take } = newHome();
  await (await take()).update({ port: 1, revision: PRODUCT.revision, announced: true, ending: true });
  const profile = join(home, 'profile.yaml');
  writeFileSync(profile, 'version: 19\n');
  const plan = await rdctl(['plan', profile], { env });
  expect(plan.exit, plan.err).toBe(0);
  expect(plan.err + plan.out).toContain('The service is ending');
  const ending = `The last service (pid ${process.pid}) is ending; \`rdctl start\` waits for it`;
  const says = async (...commands: string[]) => {
    for (const command of commands) {
      const { exit, err } = await rdctl([command], { env });
      expect({ command, exit, err }).toEqual({ command, exit: 1, err: expect.stringContaining(ending) });
      expect(err).not.toMatch(/stale|No service is running/);
    }
  };
  await says('status', 'events', 'diagnostics', 'list-settings');
  // Between its last connection and the removal of its file.
  writeConnection(join(home, 'app-engine.json'), { user: 'user', password: 'secret', port: 1, pid: process.pid });
  await says('status', 'events', 'diagnostics');
});

test('an interrupted start says that the service goes on starting, and how to stop it', async () => {
  const { env } = newHome();
  const abort = new AbortController();
  const io = fakeIo({ env, signal: abort.signal });
  io.self = [process.execPath, '-e', 'setTimeout(() => undefined, 60_000)'];
  const clock: Clock = { now: () => 0, sleep: async () => abort.abort('SIGINT') };
  const error = await launchService({ io, globals: {}, power: 'started', quiet: true, clock }).catch(
    (thrown) => thrown,
  );
  const [, pid = ''] = /^It goes on starting \(pid (\d+)\)\. Stop it with `rdctl shutdown`\.$/.exec(error.advice) ?? [];
  onTestFinished(() => void process.kill(Number(pid), 'SIGKILL'));
  expect(error).toMatchObject({ code: 'ERR_CANCELLED', message: 'Interrupted while the service was starting.' });
});

test('an interrupted command also waits for its service to end, at most as long as a stop can take', async () => {
  const { env } = newHome();
  const io = fakeIo({ env, progress: true, signal: AbortSignal.abort() });
  let now = 0;
  const clock: Clock = {
    now: () => now,
    async sleep(_ms, signal) {
      expect(signal).toBeUndefined();
      now += 500;
    },
  };
  const wait = { io, clock, late: 'it still runs', waiting: 'Waiting', advice: 'End it.' };
  await waitForExit({ ...wait, lives: async () => now < 3000 });
  expect(io.text.err.endsWith('Waiting: 2 s of at most 180 s …\r\u001b[2K')).toBe(true);
  await expect(waitForExit({ ...wait, lives: async () => true })).rejects.toMatchObject({
    code: 'ERR_DEADLINE',
    message: 'it still runs after 180 s',
    advice: 'End it.',
  });
  const cancelled = 'It goes on stopping.';
  await expect(waitForExit({ ...wait, cancelled, lives: async () => true })).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
    message: cancelled,
  });
});

test('a stopping service marks its lock before it answers', async () => {
  const service = await startService({ env: { RDCTL_SIMULATED_LATENCY_MS: '200' } });
  await service.converged();
  expect(await service.client.shutdown()).toBe('Shutting down.');
  // If it is gone by now, nothing can be mistaken for a service that stays.
  expect(
    await isStaying(service.client, {
      connect: async () => service.service.connection,
      globals: {},
      io: fakeIo({ env: service.env }),
    }),
  ).toBe(false);
  await service.service.stopped;
});

test('a failed start removes the connection file of a killed service', async () => {
  const { home, io } = newHome();
  const file = homeOf(io).connectionFile;
  writeFileSync(file, JSON.stringify({ user: 'user', password: 'p', port: 1, pid: 2 ** 30 }));
  const other = await startService();
  await expect(startService({ home, port: other.service.port })).rejects.toMatchObject({ code: 'ERR_PORT_IN_USE' });
  expect(existsSync(file)).toBe(false);
});

describe('shutdown', () => {
  /** The lock of a service that is stopping; its process exits on request. */
  async function stopping(directory: string) {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    await once(child, 'spawn');
    onTestFinished(() => void child.kill('SIGKILL'));
    const pid = child.pid ?? 0;
    mkdirSync(directory, { recursive: true });
    const entry = { pid, since: new Date().toISOString(), held: true, announced: false, ending: true };
    writeFileSync(join(directory, 'x.json'), JSON.stringify(entry));
    return { pid, end: () => void child.stdin?.end() };
  }

  test('waits together with an earlier shutdown', async () => {
    const { env, io } = newHome();
    const { pid, end } = await stopping(homeOf(io).serviceLock);
    const said = { exit: 0, out: 'Shutting down.\n', err: '' };
    expect(await rdctl(['shutdown', '--wait=false'], { env })).toEqual(said);
    expect(await processTable.isAlive({ pid })).toBe(true);
    const both = Promise.all([rdctl(['shutdown'], { env }), rdctl(['shutdown'], { env })]);
    const waiting = fakeIo({ env, progress: true });
    const { run } = await import('../../cli/run.ts');
    const third = run(['shutdown'], waiting);
    await expect.poll(() => waiting.text.err, { timeout: 60_000 }).toContain('Waiting until the backend has stopped');
    end();
    expect(await both).toEqual([said, said]);
    expect(await third).toBe(0);
    expect(await processTable.isAlive({ pid })).toBe(false);
  });

  test('waits once for a service that hangs, and says how to end it', async () => {
    const { now, sleep } = createVirtualClock({ auto: true });
    const began = now();
    vi.spyOn(steadyClock, 'now').mockImplementation(now);
    vi.spyOn(steadyClock, 'sleep').mockImplementation(sleep);
    onTestFinished(() => void vi.restoreAllMocks());
    const { home, env, take } = newHome();
    await using server = await scriptedServer(({ method }) => ({
      body: method === 'PUT' ? 'Shutting down.' : '{"vmState":"STARTED"}',
    }));
    await (await take()).update({ port: server.port, announced: true, ending: true });
    const { pid } = process;
    writeConnection(join(home, 'app-engine.json'), { user: 'user', password: 'secret', port: server.port, pid });
    const { exit, out, err } = await rdctl(['shutdown'], { env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^(?: {2}Waiting until the backend has stopped: \d+ s of at most 180 s …\n)+Error: /);
    expect(err).toContain('\nError: the service was asked to stop but is still running after 180 s\n');
    expect(err).toContain(`kill -9 ${pid}`);
    expect(now() - began).toBe(SERVICE_STOP_MS);
  });

  test('reaches a service that is starting as soon as it answers', async () => {
    const { env, take } = newHome();
    const lock = await take();
    const io = fakeIo({ env, progress: true });
    const { run } = await import('../../cli/run.ts');
    const ended = run(['shutdown'], io);
    await expect.poll(() => io.text.err, { timeout: 60_000 }).toContain('Waiting until the service has started');
    await lock.release();
    expect(await ended).toBe(0);
  });
});

describe('a start', () => {
  const tool = builtTool();

  test('waits for a service that is stopping or works for a command', async () => {
    for (const facts of [{ ending: true }, { idle: true }]) {
      for (const argv of [['start'], ['apply', '-f', '-']]) {
        const { env, take } = newHome();
        const lock = await take();
        await lock.update(facts);
        let said = '';
        const ended = rdctlProgram(argv, {
          entry: tool.entry(),
          env,
          stdin:
            'apiVersion: rdctl/v1\nkind: Profile\nstate: started\nsettings: { version: 19, kubernetes: { enabled: false } }\n',
          onSpawn: (child) => child.stderr?.on('data', (part: Buffer) => (said += part.toString())),
        });
        await expect.poll(() => said, { timeout: 60_000 }).toContain('waiting for it to exit');
        await lock.release();
        expect(await ended).toMatchObject({ exit: 0 });
        expect((await rdctlProgram(['status'], { entry: tool.entry(), env })).exit).not.toBe(1);
        expect(await rdctlProgram(['shutdown'], { entry: tool.entry(), env })).toMatchObject({ exit: 0 });
      }
    }
  });

  test('retries when the service it gave way to has ended', async () => {
    const { home, env, take } = newHome();
    const lock = await take();
    const ended = rdctlProgram(['start'], { entry: tool.entry(), env });
    const output = join(home, 'logs', 'service-output.log');
    const said = () => (existsSync(output) ? readFileSync(output, 'utf8') : '');
    await expect.poll(said, { timeout: 60_000 }).toContain('is already running');
    await lock.release();
    expect(await ended).toMatchObject({ exit: 0 });
    expect(await rdctlProgram(['shutdown'], { entry: tool.entry(), env })).toMatchObject({ exit: 0 });
  });

  test('after shutdown --wait=false gets a new service', async () => {
    const { home, env: fast } = newHome();
    const env = { ...fast, RDCTL_SIMULATED_LATENCY_MS: '200' };
    const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await call('shutdown')));
    expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
    const file = join(home, 'app-engine.json');
    const pid = () => JSON.parse(readFileSync(file, 'utf8')).pid;
    const first = pid();
    expect(await call('shutdown', '--wait=false')).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
    expect(await call('start')).toMatchObject({ exit: 0 });
    expect(pid()).not.toBe(first);
    expect(await processTable.isAlive({ pid: first })).toBe(false);
    expect(await processTable.isAlive({ pid: pid() })).toBe(true);
  });
});
