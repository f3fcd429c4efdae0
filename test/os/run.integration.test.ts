import { describe, expect, test } from 'vitest';
import { lastLines, run } from '../../src/os/run.ts';

const node = (script: string) => [process.execPath, '-e', script];

describe('run', () => {
  test('returns what the program printed, and passes its input', async () => {
    const script = 'process.stdin.pipe(process.stdout); console.error("aside")';
    expect(await run(node(script), { input: 'through' })).toEqual({
      exitCode: 0,
      stdout: 'through',
      stderr: 'aside\n',
    });
  });

  test('names the program, its exit status and its last output on failure', async () => {
    const script = 'console.error("first\\nlast words"); process.exitCode = 7';
    await expect(run(node(script))).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: `${process.execPath} failed with exit status 7: last words`,
      details: ['first', 'last words'],
    });
  });

  test('accepts the given exit statuses', async () => {
    expect(await run(node('process.exitCode = 3'), { accept: [0, 3] })).toMatchObject({ exitCode: 3 });
  });

  test('says how to install a missing program', async () => {
    const failure = run(['iptables'], { env: { PATH: '/nonexistent' } });
    await expect(failure).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: 'iptables was not found',
      advice: 'Install it: apt-get install --no-install-recommends iptables',
    });
  });

  test('stops a program that says that it cannot go on', async () => {
    const script = 'console.error("first\\nan internal error\\nregisters"); setInterval(() => undefined, 1000)';
    await expect(run(node(script), { fatal: 'internal error' })).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: `${process.execPath} was stopped: an internal error`,
      details: ['an internal error'],
    });
    expect(await run(node('console.error("no error")'), { fatal: 'internal error' })).toMatchObject({ exitCode: 0 });
  });

  test('kills the program when the signal aborts, and starts none if it already has', async () => {
    const control = new AbortController();
    const running = run(node('console.log("up"); setInterval(() => undefined, 1000)'), { signal: control.signal });
    control.abort();
    await expect(running).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    await expect(run(['/nonexistent'], { signal: control.signal })).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });

  test('kills a program that takes too long or prints too much', async () => {
    const silent = run(node('setInterval(() => undefined, 1000)'), { timeoutMs: 100 });
    await expect(silent).rejects.toThrow('did not finish within 0.1 s');
    const loud = run(node('process.stdout.write("x".repeat(5000)); setInterval(() => undefined, 1000)'), {
      maxOutput: 100,
    });
    await expect(loud).rejects.toThrow('printed more than 100 bytes');
  });

  test('ends at its limit although another program holds the output of one that has exited', async () => {
    const script = 'require("child_process").spawn("sleep", ["30"], { stdio: "inherit", detached: true }).unref()';
    await expect(run(node(script), { timeoutMs: 500 })).rejects.toThrow('did not finish within 0.5 s');
  }, 10_000);

  test('gives the program only the given environment', async () => {
    process.env.RDCTL_TEST_SECRET = 'hidden';
    const script = 'console.log(process.env.RDCTL_TEST_SECRET ?? "none", process.env.GIVEN)';
    const { stdout } = await run(node(script), { env: { GIVEN: 'yes' } });
    delete process.env.RDCTL_TEST_SECRET;
    expect(stdout).toBe('none yes\n');
  });

  test('never goes through a shell', async () => {
    const { stdout } = await run([process.execPath, '-e', 'console.log(process.argv[1])', '$(id); `id`']);
    expect(stdout).toBe('$(id); `id`\n');
  });
});

test('the last lines skip empty ones', () => {
  expect(lastLines('a\n\nb  \n\nc\n', 2)).toEqual(['b', 'c']);
});

test('a program that the system refuses to start at once is a failure like any other', async () => {
  // Longer than Linux takes one argument; Node throws, where it reports a missing program later.
  await expect(run(['true', 'x'.repeat(2 ** 18)])).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringContaining('true could not be run: '),
  });
});
