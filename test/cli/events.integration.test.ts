import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { run } from '../../cli/run.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { fakeIo, rdctl } from '../helpers/cli.ts';
import { foreignApp } from '../helpers/foreign-app.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

const tool = builtTool();

/** The tool as a program that goes on until it gets a signal. */
function following(home: string, ...argv: string[]) {
  const env = { PATH: process.env.PATH, RDCTL_HOME: home, NO_COLOR: '1' };
  const [program, ...words] = commandOf(tool.entry());
  const child: ChildProcess = spawn(program, [...words, ...argv], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const text = { out: '', err: '' };
  child.stdout?.on('data', (part: Buffer) => {
    text.out += part.toString();
  });
  child.stderr?.on('data', (part: Buffer) => {
    text.err += part.toString();
  });
  const ended = once(child, 'exit').then(([code]: number[]) => code);
  return { child, text, ended, lines: () => text.out.split('\n').filter((line) => line !== '') };
}

const BACK = /^notice: Lost the service .*\nnotice: The service is back\.\n$/;
const CONVERGED = /^\S+ \S+ {2}status {7}STARTED, generation \d+: converged$/;
const kindsIn = (lines: readonly string[]) => lines.map((line) => line.slice(21).split(/ +/)[0]);

test('events and a watched status go on after the service was killed, miss no change, and end with Ctrl-C', async () => {
  const home = temporaryDirectory();
  const run = toolAt(tool.entry(), home, { RDCTL_DRIVER: 'simulated' });
  await run(['start', '--wait']);
  const events = following(home, 'events', '--kind', 'change,service');
  const json = following(home, 'events', '--kind', 'change', '-o', 'json');
  const status = following(home, 'status', '--watch');
  const documents = following(home, 'status', '--watch', '-o', 'json');
  await vi.waitFor(() => expect([status, documents].map(({ text }) => text.out)).not.toContain(''), 10_000);
  await run(['set', '--images.namespace=before']);
  await vi.waitFor(() => expect(events.text.out + json.text.out).toMatch(/namespace[\s\S]*namespace/), 10_000);
  const { pid } = JSON.parse((await run(['status', '-o', 'json'])).out);
  process.kill(pid, 'SIGKILL');
  await vi.waitFor(() => expect(events.text.err).toContain('waiting for it to come back'), 10_000);
  await run(['start']);
  await run(['set', '--images.namespace=after']);
  await vi.waitFor(() => expect(json.lines()).toHaveLength(2), 10_000);
  await vi.waitFor(() => expect(kindsIn(events.lines())).toEqual(['change', 'service', 'change']), 10_000);
  expect(json.lines().map((line) => JSON.parse(line).change.changes[0].after)).toEqual(['before', 'after']);
  await vi.waitFor(() => expect(status.lines().at(-1)).toMatch(CONVERGED), 10_000);
  for (const each of [events, json, status, documents]) {
    await vi.waitFor(() => expect(each.text.err).toMatch(BACK), 10_000);
    each.child.kill('SIGINT');
    expect(await each.ended).toBe(130);
  }
  for (const line of documents.lines()) expect(JSON.parse(line)).toMatchObject({ kind: 'Status' });
  const { id } = JSON.parse(json.lines()[0] ?? '');
  const since = following(home, 'events', '--kind', 'change', '--since', id, '-o', 'json');
  await vi.waitFor(
    () =>
      expect(since.lines()).toEqual(
        json
          .lines()
          .slice(1)
          .map((line) => expect.stringContaining(JSON.stringify(JSON.parse(line).change))),
      ),
    10_000,
  );
  // Nobody reads any more, so it ends with the next event.
  since.child.stdout?.destroy();
  await run(['set', '--images.namespace=unread']);
  expect(await since.ended).toBe(0);
});

test('apply --watch stays after the apply; with --no-wait it shows all that the apply causes', async () => {
  const running = await startService();
  await running.converged();
  const leaving = new AbortController();
  const stdin = 'version: 19\ncontainerEngine:\n  name: containerd\n';
  const io = fakeIo({ env: running.env, stdin, signal: leaving.signal });
  const over = run(['apply', '-f', '-', '--no-wait', '--watch'], io);
  const kinds = () => kindsIn(io.text.out.split('\n').filter((line) => /^\d/.test(line)));
  await vi.waitFor(() => expect(kinds()).toEqual(expect.arrayContaining(['change', 'phase', 'outcome'])), 10_000);
  leaving.abort();
  expect(await over).toBe(0);
});

test('another application has no events', async () => {
  const app = await foreignApp({ version: 16 });
  for (const argv of [['events'], ['status', '--watch']]) {
    expect(await rdctl(argv, { env: app.env })).toMatchObject({
      exit: 3,
      err: expect.stringContaining('has no events'),
    });
  }
});
