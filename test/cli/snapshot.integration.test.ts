import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { localTime, snapshot, snapshotTable } from '../../cli/commands/snapshot.ts';
import { commandHelp } from '../../cli/views/help-text.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl, rdctlProgram } from '../helpers/cli.ts';
import { type Received, type Reply, scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const STARTED = { body: '{"vmState":"STARTED","locked":false}' };
const RECORDS = [
  { created: '2026-01-02T03:04:05.123456789Z', name: 'one', description: 'a <b> & "c"\nmore' },
  { created: '2026-02-03T04:05:06Z', name: 'größer 🦀', description: '' },
];

/** A server that answers requests for snapshots this way. */
function server(answer: (request: Received) => Reply) {
  return scriptedServer((request) => (request.path === '/v1/backend_state' ? STARTED : answer(request)));
}

describe('help', () => {
  test.each([snapshot, ...(snapshot.subcommands ?? [])].map((command) => [command.name, command] as const))(
    'of %s',
    async (name, command) => {
      const help = commandHelp(command, 'linux');
      expect(help.split('\n').filter((line) => line.length > 80)).toEqual([]);
      await expect(help).toMatchFileSnapshot(`../golden/help/${name.replace(' ', '-')}.txt`);
    },
  );

  test('the group alone prints it', async () => {
    expect(await rdctl(['snapshot'])).toEqual({ exit: 0, out: commandHelp(snapshot, 'linux'), err: '' });
  });
});

describe('list', () => {
  test('is a table in the layout that scripts parse', async () => {
    await using there = await server(() => ({ body: JSON.stringify(RECORDS) }));
    const [first, second] = RECORDS.map(({ created }) => localTime(created));
    const table = [
      `NAME        CREATED${' '.repeat([...(first ?? '')].length - 7 + 4)}DESCRIPTION`,
      `one         ${first}    a <b> & "c"…`,
      `größer 🦀    ${second}    `,
      '',
    ].join('\n');
    for (const word of ['list', 'ls']) {
      expect(await rdctl(['snapshot', word], { env: there.env })).toEqual({ exit: 0, out: table, err: '' });
    }
  });

  test('truncates a description to 63 code points', () => {
    const row = (description: string) =>
      snapshotTable([{ created: '2026-01-02T03:04:05Z', name: 'n', description }])
        .split('\n')[1]
        ?.split('    ')
        .at(-1);
    expect(row('d'.repeat(63))).toBe('d'.repeat(63));
    expect(row('🦀'.repeat(64))).toBe(`${'🦀'.repeat(62)}…`);
    expect(row('  one\ntwo  ')).toBe('one…');
  });

  test('is one JSON object per line, or one JSON list', async () => {
    await using there = await server(() => ({ body: JSON.stringify(RECORDS) }));
    const { exit, out, err } = await rdctl(['snapshot', '--json', 'list'], { env: there.env });
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out).toBe(
      `{"created":"2026-01-02T03:04:05.123456789Z","name":"one","description":"a \\u003cb\\u003e \\u0026 \\"c\\"\\nmore"}
{"created":"2026-02-03T04:05:06Z","name":"größer 🦀","description":""}
`,
    );
    const list = await rdctl(['snapshot', 'list', '-o', 'json'], { env: there.env });
    expect(JSON.parse(list.out)).toEqual(RECORDS);
  });

  test('reports no snapshots on stderr; with --json it prints nothing', async () => {
    await using there = await server(() => ({ body: '[]' }));
    const stage = { env: there.env };
    expect(await rdctl(['snapshot', 'list'], stage)).toEqual({ exit: 0, out: '', err: 'No snapshots present.\n' });
    expect(await rdctl(['snapshot', 'list', '--json'], stage)).toEqual({ exit: 0, out: '', err: '' });
  });

  test('reads the files when no service runs, and skips broken ones', async () => {
    const home = temporaryDirectory();
    const directory = join(home, 'snapshots', '00000000-0000-4000-8000-000000000000');
    mkdirSync(directory, { recursive: true });
    const { exit, out, err } = await rdctl(['snapshot', 'list'], { env: { RDCTL_HOME: home } });
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err).toBe(
      `notice: The snapshot in ${directory} is skipped: it is not complete. Remove it if it is not needed.\nNo snapshots present.\n`,
    );
  });
});

describe('requests', () => {
  const OK: Reply = { body: 'Snapshot successfully created' };

  test.each<[string[], string | undefined, Partial<Received>]>([
    [['create', 'one'], undefined, { method: 'POST', path: '/v1/snapshots', body: '{"name":"one","description":""}' }],
    [
      ['create', 'a "b" 🦀', '--description', 'why'],
      undefined,
      { method: 'POST', body: '{"name":"a \\"b\\" 🦀","description":"why"}' },
    ],
    [
      ['create', 'one', '--description-from', '-'],
      'from here\n',
      { method: 'POST', body: '{"name":"one","description":"from here\\n"}' },
    ],
    [['create', '--', '--help'], undefined, { method: 'POST', body: '{"name":"--help","description":""}' }],
    [['delete', 'a/b c&d'], undefined, { method: 'DELETE', path: '/v1/snapshots?name=a%2Fb%20c%26d' }],
    [['restore', 'a/b'], undefined, { method: 'POST', path: '/v1/snapshot/restore?name=a%2Fb', body: '' }],
  ])('of %j', async (argv, stdin, request) => {
    await using there = await server(() => OK);
    const stage = { env: there.env, ...(stdin === undefined ? {} : { stdin }) };
    expect(await rdctl(['snapshot', ...argv], stage)).toEqual({ exit: 0, out: '', err: '' });
    expect(there.received.findLast(({ method }) => method !== 'GET')).toMatchObject(request);
  });

  test.each<[string[], string]>([
    [['create'], 'accepts 1 arg(s), received 0'],
    [['restore', 'a', 'b'], 'accepts 1 arg(s), received 2'],
    [['list', 'x'], 'unknown command "x" for "rdctl snapshot list"'],
    [['unlock', 'x'], 'unknown command "x" for "rdctl snapshot unlock"'],
    [
      ['create', 'a', '--description=b', '--description-from=c'],
      'can\'t specify more than one option from "--description" and "--description-from"',
    ],
    [['creat', 'a'], 'unknown command "creat" for "rdctl snapshot"'],
  ])('%j is a usage error, also with --json', async (argv, message) => {
    for (const more of [[], ['--json']]) {
      const { exit, out, err } = await rdctl(['snapshot', ...argv, ...more], {
        env: { RDCTL_HOME: temporaryDirectory() },
      });
      expect({ exit, out }).toEqual({ exit: 1, out: '' });
      expect(err).toContain(`Error: ${message}\n`);
      expect(err).toContain('Usage:\n');
    }
  });

  test('prints a refusal unchanged, and as an object with --json', async () => {
    const text = 'failed to restore snapshot "x": can\'t find snapshot "x"';
    await using there = await server(() => ({ status: 400, body: text }));
    const stage = { env: there.env };
    expect(await rdctl(['snapshot', 'restore', 'x'], stage)).toEqual({ exit: 1, out: '', err: `Error: ${text}\n` });
    const json = await rdctl(['snapshot', 'restore', 'x', '--json'], stage);
    expect(json).toEqual({ exit: 1, out: `${JSON.stringify({ error: text })}\n`, err: '' });
  });

  test('refuses a bad name before any request', async () => {
    const stage = { env: { RDCTL_HOME: temporaryDirectory() } };
    expect((await rdctl(['snapshot', 'create', ''], stage)).err).toBe(
      'Error: snapshot name must not be the empty string\n',
    );
    expect((await rdctl(['snapshot', 'delete', 'x'], stage)).err).toBe(
      'Error: failed to delete snapshot "x": can\'t find snapshot "x"\n',
    );
    const missing = await rdctl(['snapshot', 'create', 'x', '--description-from=/nowhere'], stage);
    expect(missing).toEqual({ exit: 1, out: '', err: 'Error: open /nowhere: no such file or directory\n' });
  });

  test('does not restore another application by accident', async () => {
    await using there = await server(() => OK);
    const data = temporaryDirectory();
    writeConnection(join(data, 'rancher-desktop', 'rd-engine.json'), { user: 'u', password: 'p', port: there.port });
    const stage = { env: { HOME: data, XDG_DATA_HOME: data, XDG_CONFIG_HOME: data, XDG_STATE_HOME: data } };
    const refused = await rdctl(['snapshot', 'restore', 'x'], stage);
    expect(refused).toMatchObject({ exit: 3, out: '' });
    expect(refused.err).toContain('--target rancher-desktop');
    expect(there.received.filter(({ method }) => method === 'POST')).toEqual([]);
    expect(await rdctl(['snapshot', 'restore', 'x', '--target', 'rancher-desktop'], stage)).toMatchObject({ exit: 0 });
    expect(await rdctl(['snapshot', 'create', 'x'], stage)).toMatchObject({ exit: 0 });
  });
});

/** A simulation that only has its cluster. */
const STOPS = 'notice: stops the workloads of the cluster\n';

test('create, restore and set report what they will stop', async () => {
  const service = await startService({
    settings: { kubernetes: { enabled: false } },
    env: { RDCTL_SIMULATED_WORKLOAD: 'containers=2' },
  });
  const call = async (...argv: string[]) => {
    await service.converged();
    return rdctl(argv, { env: service.env });
  };
  const reply = 'Status: reconfiguring Rancher Desktop to apply changes (this may take a while).\n';
  expect(await call('set', '--application.debug')).toMatchObject({ exit: 0, err: '' });
  expect(await call('set', '--container-engine.name=containerd')).toEqual({
    exit: 0,
    out: reply,
    err: `notice: stops 2 containers: simulated-1 and simulated-2
notice: 2 containers stay with moby and are not visible in containerd
`,
  });
  expect(await call('snapshot', 'create', 'one')).toEqual({
    exit: 0,
    out: '',
    err: `notice: stops 2 containers: simulated-1 and simulated-2
notice: The backend starts again once the copy is complete.
`,
  });
  expect(await call('snapshot', 'create', 'two')).toEqual({ exit: 0, out: '', err: '' });
  expect(await call('snapshot', 'restore', 'one')).toEqual({ exit: 0, out: '', err: '' });
});

test('a signal cancels through the API, waits for the request, and sets the exit code', async () => {
  const service = await startService({ env: { RDCTL_SIMULATED_LATENCY_MS: '100' } });
  for (const json of [false, true]) {
    await service.converged();
    const abort = new AbortController();
    const argv = ['snapshot', 'create', 'one', ...(json ? ['--json'] : [])];
    const outcome = rdctl(argv, { env: service.env, signal: abort.signal });
    await expect.poll(async () => (await service.client.backendState()).locked).toBe(true);
    abort.abort('SIGINT');
    const text = 'failed to create snapshot: the operation was canceled';
    expect(await outcome).toEqual({
      exit: 130,
      out: json ? `${JSON.stringify({ error: text })}\n` : '',
      err: json
        ? ''
        : `${STOPS}notice: The backend starts again once the copy is complete.\nCancelling snapshot creation...\nError: ${text}\nNothing was changed.\n`,
    });
    expect(await service.client.backendState()).toMatchObject({ locked: false });
    expect(await service.client.status()).toMatchObject({ converged: true, backendState: 'STARTED' });
  }
  expect(await service.converged()).toMatchObject({ power: 'started' });
});

test('reports a backend that does not start after a snapshot, and keeps the snapshot', async () => {
  const service = await startService({
    settings: { containerEngine: { name: 'moby' } },
    env: { RDCTL_SIMULATED_FAULTS: 'moby.start:terminal' },
  });
  await expect.poll(async () => (await service.client.backendState()).vmState).toBe('ERROR');
  const { exit, out, err } = await rdctl(['snapshot', 'create', 'one'], { env: service.env });
  expect({ exit, out }).toEqual({ exit: 0, out: '' });
  expect(err).toMatch(/^notice: The snapshot is complete, but the backend is not running \(ERROR\): .*moby start.*\n$/);
  expect((await rdctl(['snapshot', 'list'], { env: service.env })).out).toContain('\none ');
});

test('unlock removes the file, accepts that there is none, and reports an operation in progress', async () => {
  const home = temporaryDirectory();
  const stage = { env: { RDCTL_HOME: home } };
  expect(await rdctl(['snapshot', 'unlock'], stage)).toEqual({ exit: 0, out: '', err: '' });
  const file = join(home, 'backend.lock');
  writeFileSync(file, '');
  expect(await rdctl(['snapshot', 'unlock'], stage)).toEqual({ exit: 0, out: '', err: '' });
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, JSON.stringify({ action: 'Creating snapshot "x"', pid: process.pid }));
  expect(await rdctl(['snapshot', 'unlock'], stage)).toMatchObject({
    exit: 0,
    err: `notice: the service (pid ${process.pid}) is still working: Creating snapshot "x"\n`,
  });
  expect(existsSync(file)).toBe(false);
});

test('with a running service: what is created is listed, restored and deleted', async () => {
  const service = await startService();
  await service.converged();
  const call = (...argv: string[]) => rdctl(['snapshot', ...argv], { env: service.env });
  expect(await call('create', 'one', '--description=first')).toEqual({
    exit: 0,
    out: '',
    err: `${STOPS}notice: The backend starts again once the copy is complete.\n`,
  });
  await service.converged();
  expect((await call('list', '--json')).out).toMatch(/^\{"created":"[^"]+","name":"one","description":"first"\}\n$/);
  expect(await call('create', 'one')).toMatchObject({ exit: 1, err: 'Error: name "one" already exists\n' });
  expect(await call('restore', 'one')).toEqual({
    exit: 0,
    out: '',
    err: `${STOPS}notice: This happens once the snapshot is verified; the backend then starts with its data.\n`,
  });
  expect((await call('restore', 'none')).err).not.toContain('notice');
  expect(await call('delete', 'one')).toEqual({ exit: 0, out: '', err: '' });
  expect((await call('ls')).err).toBe('No snapshots present.\n');
});

describe('delete without a running service', () => {
  /** A home in which only one snapshot was left, as after a factory reset. */
  function leftover(): { home: string; stage: { env: Record<string, string> } } {
    const home = temporaryDirectory();
    const directory = join(home, 'snapshots', '00000000-0000-4000-8000-000000000000');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'metadata.json'), JSON.stringify({ ...RECORDS[1], name: 'one' }));
    writeFileSync(join(directory, 'complete.txt'), '');
    return { home, stage: { env: { RDCTL_HOME: home } } };
  }

  test('removes the files and creates nothing', async () => {
    const { home, stage } = leftover();
    expect(await rdctl(['snapshot', 'delete', 'two'], stage)).toMatchObject({
      exit: 1,
      err: 'Error: failed to delete snapshot "two": can\'t find snapshot "two"\n',
    });
    expect(await rdctl(['snapshot', 'delete', 'one'], stage)).toEqual({ exit: 0, out: '', err: '' });
    expect(readdirSync(home, { recursive: true })).toEqual(['snapshots']);
  });

  test('does not wait for whoever holds the home', async () => {
    const { home, stage } = leftover();
    const lock = await lockHome(join(home, 'state', 'service.lock'), home);
    onTestFinished(() => lock.release());
    const { exit, err } = await rdctl(['snapshot', 'delete', 'one'], stage);
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: failed to delete snapshot "one": a service for .* is already running \(pid \d+\)\n/);
    expect((await rdctl(['snapshot', 'list'], stage)).out).toContain('\none ');
  });
});

test('broken snapshots are also reported with a running service', async () => {
  const service = await startService();
  await service.converged();
  const directory = join(service.here.snapshots, '00000000-0000-4000-8000-000000000000');
  mkdirSync(directory, { recursive: true });
  expect(await rdctl(['snapshot', 'ls', '--json'], { env: service.env })).toEqual({
    exit: 0,
    out: '',
    err: `notice: The snapshot in ${directory} is skipped: it is not complete. Remove it if it is not needed.\n`,
  });
});

describe('without a running service', () => {
  const tool = builtTool();

  test('concurrent commands run one after the other', async () => {
    const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await call('shutdown')));
    const names = ['one', 'three', 'two'];
    const ended = await Promise.all(names.map((name) => call('snapshot', 'create', name, '--json')));
    expect(ended).toEqual(names.map(() => ({ exit: 0, out: '', err: '' })));
    const { out } = await call('snapshot', 'ls', '-o', 'json');
    expect(
      JSON.parse(out)
        .map(({ name }: { name: string }) => name)
        .sort(),
    ).toEqual(names);
    expect(existsSync(join(env.RDCTL_HOME, 'app-engine.json'))).toBe(false);
  });

  test('uses a service that another command starts meanwhile, and leaves it running', async () => {
    const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await call('shutdown')));
    const starting = call('start');
    // Its service exists, but cannot be found yet.
    await held(env.RDCTL_HOME);
    // What runs by then is named before it is stopped.
    const created = await call('snapshot', 'create', 'one');
    expect(created).toMatchObject({ exit: 0, out: '', err: expect.stringMatching(/^(?:notice: .*\n)*$/) });
    expect(await starting).toMatchObject({ exit: 0 });
    expect(await call('status')).toMatchObject({ exit: 0 });
  });

  test('a killed command also ends the service that it started', async () => {
    const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '500' };
    let child: ChildProcess | undefined;
    const killed = rdctlProgram(['snapshot', 'create', 'one'], {
      entry: tool.entry(),
      env,
      onSpawn: (spawned) => {
        child = spawned;
      },
    });
    await held(env.RDCTL_HOME);
    child?.kill('SIGKILL');
    expect(await killed).toMatchObject({ out: '' });
    await expect.poll(() => isHeld(env.RDCTL_HOME)).toBe(false);
  });

  test('starts one that runs nothing, keeps the desired power state, and ends', async () => {
    const home = temporaryDirectory();
    const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await call('shutdown')));
    expect(await call('snapshot', 'create', 'one')).toEqual({ exit: 0, out: '', err: '' });
    expect(JSON.parse(readFileSync(join(home, 'state', 'state.json'), 'utf8'))).toMatchObject({ power: 'started' });
    expect(existsSync(join(home, 'state', 'drivers', 'simulated', 'machine.json'))).toBe(false);
    expect(existsSync(join(home, 'app-engine.json'))).toBe(false);
    expect(await call('snapshot', 'restore', 'one')).toEqual({ exit: 0, out: '', err: '' });
    expect(await call('snapshot', 'delete', 'one')).toEqual({ exit: 0, out: '', err: '' });
    expect(await call('snapshot', 'list')).toEqual({ exit: 0, out: '', err: 'No snapshots present.\n' });
    expect(existsSync(join(home, 'app-engine.json'))).toBe(false);
  });
});

/** A service holds the lock of the home, or waits for it. */
function isHeld(home: string): boolean {
  const lock = join(home, 'state', 'service.lock');
  return existsSync(lock) && readdirSync(lock).some((name) => name.endsWith('.json'));
}

async function held(home: string): Promise<void> {
  while (!isHeld(home)) await new Promise((resolve) => setImmediate(resolve));
}
