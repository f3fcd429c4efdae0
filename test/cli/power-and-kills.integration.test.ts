import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processTable } from '../../src/os/process-table.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

const tool = builtTool();

const profile = (rest: object) => JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...rest });
/** Does not mention the power state. */
const CALM = profile({ settings: { version: 19, application: { debug: true }, kubernetes: { enabled: false } } });
const STARTED = profile({ settings: { version: 19, kubernetes: { enabled: false } }, state: 'started' });

function stage(latencyMs = 0) {
  const home = temporaryDirectory();
  const rdctl = toolAt(tool.entry(), home, {
    RDCTL_DRIVER: 'simulated',
    RDCTL_SIMULATED_LATENCY_MS: String(latencyMs),
  });
  const connectionFile = join(home, 'app-engine.json');
  async function kill() {
    const { pid } = JSON.parse(readFileSync(connectionFile, 'utf8'));
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => processTable.isAlive({ pid })).toBe(false);
  }
  return {
    home,
    connectionFile,
    rdctl: (argv: string[], stdin = '') => rdctl(argv, stdin),
    kill,
    /** Leaves what a reboot leaves: everything was written before it. */
    async reboot() {
      await kill();
      const before = Date.now() / 1000 - uptime() - 60;
      utimesSync(connectionFile, before, before);
      rmSync(join(home, 'state', 'service.lock'), { recursive: true });
    },
  };
}

test('after a kill of the service, plan and diff always say what apply then brings back', async () => {
  const { rdctl, kill } = stage();
  expect(await rdctl(['apply', '-f', '-'], STARTED)).toMatchObject({ exit: 0 });
  for (const wanted of [STARTED, profile({ settings: { version: 19 } }), STARTED]) {
    await kill();
    const planned = await rdctl(['plan', '--detailed-exitcode', '-f', '-'], wanted);
    expect(planned).toMatchObject({ exit: 2 });
    expect(planned.out).toContain('~ service: stopped → started');
    expect(planned.out).not.toContain('nothing is lost');
    const compared = await rdctl(['diff', '-'], wanted);
    expect(compared).toMatchObject({ exit: 2 });
    expect(compared.out).toContain('service: stopped → started');
    const applied = await rdctl(['apply', '-f', '-'], wanted);
    expect(applied).toMatchObject({ exit: 0 });
    expect(applied.err).toContain('~ service: stopped → started');
    expect(applied.out).toContain('Converged');
    expect(applied.out).not.toContain('Nothing to change');
    const again = await rdctl(['apply', '-f', '-'], wanted);
    expect(again.out).toContain('Nothing to change.');
    expect((await rdctl(['plan', '--detailed-exitcode', '-f', '-'], wanted)).exit).toBe(0);
  }
});

test('a reboot does not change the desired power state', async () => {
  const { rdctl, reboot } = stage();
  expect(await rdctl(['apply', '-f', '-'], STARTED)).toMatchObject({ exit: 0 });
  await reboot();
  const unmanaged = profile({ settings: { version: 19 } });
  expect((await rdctl(['plan', '--detailed-exitcode', '-f', '-'], unmanaged)).exit).toBe(2);
  // A requested start is one change, both in the plan and in the apply.
  const planned = JSON.parse((await rdctl(['plan', '-f', '-', '-o', 'json'], STARTED)).out);
  const applied = await rdctl(['apply', '-f', '-', '-o', 'json'], STARTED);
  const paths = ({ changes }: { changes: { path: string }[] }) => changes.map(({ path }) => path);
  expect(paths(planned)).toEqual(['state']);
  expect(paths(JSON.parse(applied.out))).toEqual(paths(planned));
});

test('after a kill of the service, apply reports the changes of the plan in order', async () => {
  const { rdctl, kill } = stage();
  const changes = async (argv: string[], wanted: string) =>
    JSON.parse((await rdctl([...argv, '-f', '-', '-o', 'json'], wanted)).out).changes.map(
      ({ path, before, after }: Record<string, unknown>) => [path, before, after],
    );
  expect(await rdctl(['apply', '-f', '-'], STARTED)).toMatchObject({ exit: 0 });
  const documents = [
    { settings: { version: 19, images: { namespace: 'a' } } },
    { settings: { version: 19, images: { namespace: 'b' } }, state: 'started' },
    { settings: { version: 19, images: { namespace: 'c' } }, state: 'stopped' },
  ];
  for (const document of documents) {
    await kill();
    const planned = await changes(['plan'], profile(document));
    expect(planned.map(([path]: [string]) => path)).toContain('images.namespace');
    expect(await changes(['apply'], profile(document))).toEqual(planned);
  }
});

test.each(['kill', 'reboot'])('a shutdown after a %s stops everything as usual', async (how) => {
  const { rdctl, kill, reboot, connectionFile } = stage();
  expect(await rdctl(['apply', '-f', '-'], STARTED)).toMatchObject({ exit: 0 });
  await (how === 'kill' ? kill : reboot)();
  expect(await rdctl(['shutdown'])).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
  expect(await rdctl(['shutdown'])).toEqual({ exit: 0, out: '', err: '' });
  const unmanaged = profile({ settings: { version: 19 } });
  expect((await rdctl(['plan', '--detailed-exitcode', '-f', '-'], unmanaged)).exit).toBe(0);
  expect((await rdctl(['apply', '-f', '-'], unmanaged)).out).toContain('Nothing to change.\nThe backend stays stopped');
  expect(existsSync(connectionFile)).toBe(false);
});

test('a profile without a power state starts nothing after a shutdown, but its settings are stored', async () => {
  const { rdctl, connectionFile } = stage();
  for (const starts of [false, true]) {
    const first = await rdctl(['apply', '-f', '-'], CALM.replace('"debug":true', `"debug":${starts}`));
    expect(first).toMatchObject({ exit: 0 });
    expect(first.out).toContain('The backend stays stopped; `rdctl start` starts it.');
    expect(existsSync(connectionFile)).toBe(false);
    const stored = await rdctl(['plan', '--detailed-exitcode', '-f', '-'], CALM.replace('true', String(starts)));
    expect(stored).toMatchObject({ exit: 0 });
    const second = await rdctl(['apply', '-f', '-'], CALM.replace('"debug":true', `"debug":${starts}`));
    expect(second.out).toMatch(/^Nothing to change\.\nThe backend stays stopped/);
    // The desired power is unchanged: a manual start works, and a shutdown afterwards leaves everything as before.
    expect(await rdctl(['start', '--wait'])).toMatchObject({ exit: 0 });
    expect(JSON.parse((await rdctl(['status', '-o', 'json'])).out)).toMatchObject({
      power: 'started',
      converged: true,
    });
    expect(await rdctl(['shutdown'])).toMatchObject({ exit: 0 });
  }
});

test('a refused apply leaves nothing running after a shutdown, and brings back what was killed', async () => {
  const { rdctl, reboot } = stage();
  const version = (text: string) =>
    profile({ settings: { version: 19, kubernetes: { version: text } }, state: 'started' });
  const state = async () => JSON.parse((await rdctl(['status', '-o', 'json'])).out).backendState;
  expect(await rdctl(['apply', '-f', '-'], version('1.32.7'))).toMatchObject({ exit: 0 });
  expect(await rdctl(['shutdown'])).toMatchObject({ exit: 0 });
  expect(await rdctl(['apply', '-f', '-'], version('1.30.2'))).toMatchObject({ exit: 5 });
  expect((await rdctl(['status'])).err).toContain('No service is running');
  expect(await rdctl(['start', '--wait'])).toMatchObject({ exit: 0 });
  await reboot();
  expect(await rdctl(['apply', '-f', '-'], version('1.30.2'))).toMatchObject({ exit: 5 });
  await expect.poll(state).toBe('STARTED');
});

test('rolling back does not start it either', async () => {
  const { rdctl, connectionFile } = stage();
  expect(await rdctl(['apply', '-f', '-'], CALM)).toMatchObject({ exit: 0 });
  expect(await rdctl(['apply', '--previous'])).toMatchObject({ exit: 0 });
  expect(existsSync(connectionFile)).toBe(false);
});

test('a running service with a stopped backend reports that it stays stopped', async () => {
  const { rdctl } = stage();
  expect(await rdctl(['apply', '-f', '-'], profile({ settings: { version: 19 }, state: 'stopped' }))).toMatchObject({
    exit: 0,
  });
  const { out } = await rdctl(['apply', '-f', '-'], CALM);
  expect(out).toContain('stays stopped; `rdctl start` starts it');
  expect(JSON.parse((await rdctl(['status', '-o', 'json'])).out)).toMatchObject({ backendState: 'STOPPED' });
});

test('the service finishes what a killed apply had sent, and the next apply waits for it', async () => {
  // Changing the engine takes long enough for the next apply to come before the end.
  const { rdctl, home } = stage(500);
  expect(await rdctl(['apply', '-f', '-'], STARTED)).toMatchObject({ exit: 0 });
  const extensions = { installed: { 'simulated/hello': '1.0.0' } };
  const settings = { version: 19, containerEngine: { name: 'containerd' }, application: { extensions } };
  const wanted = profile({ settings });
  const [program, ...words] = commandOf(tool.entry());
  const apply = spawn(program, [...words, 'apply', '-f', '-'], {
    env: { ...process.env, RDCTL_HOME: home },
  });
  apply.stdin.end(wanted);
  const ended = new Promise((resolve) => apply.once('close', (_code, signal) => resolve(signal)));
  let said = '';
  apply.stderr.on('data', (part) => {
    said += part;
    if (said.includes('Sent the settings.')) apply.kill('SIGKILL');
  });
  expect(await ended).toBe('SIGKILL');
  const again = await rdctl(['apply', '-f', '-'], wanted);
  expect(again).toMatchObject({ exit: 0, out: expect.stringContaining('Nothing to change.') });
  expect(again.err).toContain('still carrying out an earlier apply');
  expect(JSON.parse((await rdctl(['list-settings'])).out)).toMatchObject({
    containerEngine: { name: 'containerd' },
    application: { extensions },
  });
});
