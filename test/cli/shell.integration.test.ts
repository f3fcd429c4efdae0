import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { engineEnvironment, shownDirectory } from '../../cli/commands/shell.ts';
import type { SharedDirectory } from '../../src/drivers/driver.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { type ChildOptions, rdctl, rdctlProgram } from '../helpers/cli.ts';
import { guestRecords, writeState } from '../helpers/guest-records.ts';
import { type Reply, scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

/** A foreign endpoint, which must never be used. */
const MOBY = { name: 'moby', state: 'running', endpoint: 'unix:///run/theirs/docker.sock' };

function status(parts: object = {}): object {
  return {
    kind: 'Status',
    formatVersion: 1,
    driver: { name: 'host', simulated: false },
    machine: { state: 'on' },
    engine: MOBY,
    backendState: 'STARTED',
    counters: {},
    conditions: [],
    phases: [],
    notices: [],
    ...parts,
  };
}

/** A service of this home, or of the one in the document, with this status. */
function answers(document: object, home: () => string = () => ''): (request: { path: string }) => Reply {
  return ({ path }) => ({
    body:
      path === '/v1/backend_state'
        ? '{"vmState":"STARTED","locked":false}'
        : JSON.stringify({ home: home(), ...document }),
  });
}

/** What the host driver leaves on disk in a home where these engines were started. */
function hostRecords(home: string, engines: readonly string[] = ['moby']): string {
  const run = join(home, 'state', 'drivers', 'host', 'run');
  mkdirSync(run, { recursive: true, mode: 0o700 });
  for (const name of engines) writeFileSync(join(run, `${name}.json`), '{}');
  writeState(home, 'host');
  return run;
}

test.each([
  ['/home/u/a', '/home/u/a'],
  ['/home/u', '/home/u'],
  ['/home/user', undefined],
  ['/srv', undefined],
  ['/data/x/y', '/data/x/y'],
  ['/home/u/hidden/x', undefined],
  ['/home/u/hidden', undefined],
  ['/home/u/gone', undefined],
  ['/home/u/..a', '/home/u/..a'],
  [undefined, undefined],
])('the directory %j of this computer is in the machine as %j', (directory, expected) => {
  const mounts: SharedDirectory[] = [
    { path: '/home/u', mode: 'writable', by: '9p' },
    { path: '/link', mode: 'read-only', by: '9p' },
    { path: '/home/u/hidden', mode: 'none' },
    { path: '/home/u/gone', missing: 'it is not a directory' },
  ];
  const on = { state: 'on' as const, spec: MACHINE };
  const realPath = (path: string) => (path === '/link' ? '/data/x' : path);
  const shared = { path: '/home/u', by: '9p', mounts };
  expect(shownDirectory({ ...on, shared }, directory, realPath)).toBe(expected);
  expect(shownDirectory(on, directory, realPath)).toBeUndefined();
  expect(shownDirectory({ state: 'off' }, directory, realPath)).toBeUndefined();
});

describe('the environment', () => {
  const elsewhere = {
    DOCKER_CONTEXT: 'other',
    DOCKER_TLS_VERIFY: '1',
    DOCKER_CERT_PATH: '/x',
    PATH: '/usr/bin',
    A: 'b',
  };
  const socket = 'unix:///run/s.sock';

  test('of moby points only to this engine', () => {
    expect(engineEnvironment({ name: 'moby', endpoint: socket }, elsewhere, ['/ours'])).toEqual({
      A: 'b',
      PATH: '/ours:/usr/bin',
      DOCKER_HOST: socket,
    });
  });

  test('of containerd has a path and a namespace', () => {
    const env = engineEnvironment({ name: 'containerd', endpoint: socket }, { PATH: '/usr/bin' });
    expect(env).toEqual({ PATH: '/usr/bin', CONTAINERD_ADDRESS: '/run/s.sock', CONTAINERD_NAMESPACE: 'default' });
    const chosen = engineEnvironment({ name: 'containerd', endpoint: socket }, { CONTAINERD_NAMESPACE: 'k8s.io' });
    expect(chosen.CONTAINERD_NAMESPACE).toBe('k8s.io');
  });
});

describe('no shell', () => {
  const refused = async (document: object) => {
    await using server = await scriptedServer(answers(document, () => server.home));
    hostRecords(server.home);
    return await rdctl(['shell', 'true'], { env: server.env });
  };

  test('without a service', async () => {
    const { exit, out, err } = await rdctl(['shell'], { env: { RDCTL_HOME: temporaryDirectory() } });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(
      /^The Rancher Desktop VM needs to be running in order to execute 'rdctl shell', but it currently is not\.\n.*rdctl start/,
    );
  });

  test.each([
    ['STOPPED', 'Stopped'],
    ['STARTING', 'Starting'],
    ['STOPPING', 'Stopping'],
  ])('while the backend is %s', async (backendState, word) => {
    const { exit, out, err } = await refused(status({ machine: { state: 'off' }, backendState }));
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(
      new RegExp(
        `^The Rancher Desktop VM needs to be in state "Running" in order to execute 'rdctl shell', but it is current in state "${word}"\\.\\n.*rdctl start`,
      ),
    );
  });

  test('for a service of another home', async () => {
    const { exit, out, err } = await refused(status({ home: '/home/of/others' }));
    expect({ exit, out }).toEqual({ exit: 3, out: '' });
    expect(err).toMatch(/^Error: the service that answered does not belong to the home \/.*\n.*\/home\/of\/others/);
  });

  test.each([
    ['was not started here, whatever the service says', status({ engine: { ...MOBY, name: 'containerd' } })],
    ['is no engine', status({ engine: { ...MOBY, name: '../moby' } })],
  ])('while the engine %s', async (_, document) => {
    const { exit, err } = await refused(document);
    expect({ exit, err }).toMatchObject({
      exit: 1,
      err: expect.stringContaining('The engine containerd is not running'),
    });
  });

  test('while the engine does not run', async () => {
    const { exit, err } = await refused(status({ engine: { name: 'moby', state: 'stopped' } }));
    expect(exit).toBe(1);
    expect(err).toBe('Error: The engine moby is not running: it is stopped.\nWait for it, or check `rdctl status`.\n');
  });

  test('in a simulation', async () => {
    const { env, converged } = await startService({ power: 'started' });
    await converged();
    const { exit, out, err } = await rdctl(['shell', 'true'], { env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: The desktop is simulated, so there is no engine to open a shell for\.\n/);
  });

  test('with a refused password', async () => {
    await using server = await scriptedServer(() => ({ status: 401, body: 'Unauthorized' }));
    const { exit, err } = await rdctl(['shell'], { env: server.env });
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: 401 Unauthorized/);
  });

  test('except help, for its own first argument alone', async () => {
    for (const flag of ['-h', '--help']) {
      const { exit, out, err } = await rdctl(['shell', flag]);
      expect({ exit, err }).toEqual({ exit: 0, err: '' });
      expect(out).toContain('Usage:\n  rdctl shell [COMMAND [ARGUMENT]...]\n');
    }
  });
});

describe('a command', () => {
  const tool = builtTool();

  /** Runs `shell` as a program against a service whose engine is moby. */
  const shell = async (argv: string[], options: ChildOptions = {}) => {
    await using server = await scriptedServer(answers(status(), () => server.home));
    const run = hostRecords(server.home);
    const outcome = await rdctlProgram(argv, {
      entry: tool.entry(),
      ...options,
      env: { ...server.env, ...options.env },
    });
    return { ...outcome, out: outcome.out.replaceAll(run, 'RUN') };
  };

  /** The same, with a machine that `ssh` connects to. */
  const inGuest = async (argv: string[], ssh: string, options: ChildOptions = {}, mounts: object[] = []) => {
    // What the service says about access to the machine is not trusted, and the engine need not run.
    const access = { ssh: ['sh', '-c', 'echo theirs'], target: 'there', before: ['env', 'WHERE=theirs'] };
    const parts = { access, engine: { name: 'moby', state: 'stopped' }, driver: { name: 'host' } };
    const document = status({ ...parts, machine: { state: 'on', shared: { missing: '', mounts } } });
    await using server = await scriptedServer(answers(document, () => server.home));
    const env = { ...server.env, PATH: await guestRecords(server.home, ssh) };
    return await rdctlProgram(argv, { entry: tool.entry(), ...options, env });
  };
  /** As ssh treats its last argument: the remote shell parses it. */
  const LAST =
    'for line; do :; done; [[ " $* " == *" -S "*"/state/drivers/qemu/run/ssh "*" -T 127.0.0.1 "* ]] || exit 9';

  test('runs in the machine, if any, with its arguments, streams and exit status', async () => {
    const script = 'read line; echo "$DOCKER_HOST $line $*"; echo to-stderr >&2; exit 7';
    const argv = ['shell', 'sh', '-c', script, 'x', '--', '--help', "two  'words'", '$(id)', ''];
    expect(await inGuest(argv, `${LAST}; exec sh -c "$line"`, { stdin: 'hello\n' })).toEqual({
      exit: 7,
      out: " hello -- --help two  'words' $(id) \n",
      err: 'to-stderr\n',
    });
  });

  test('runs in the working directory if the machine shows it, else in the home of its root', async () => {
    const cwd = realpathSync(temporaryDirectory());
    const ssh = `${LAST}; cd /; exec sh -c "$line"`;
    const words = ['shell', 'sh', '-c', 'pwd; exit 3'];
    const mounts = [{ path: cwd, mode: 'writable', by: 'reverse-sshfs' }];
    expect(await inGuest(words, ssh, { cwd }, mounts)).toEqual({ exit: 3, out: `${cwd}\n`, err: '' });
    expect(await inGuest(words, ssh, { cwd })).toEqual({ exit: 3, out: '/\n', err: '' });
    const login = await inGuest(
      ['shell'],
      `${LAST}; cd /; SHELL=/bin/sh exec sh -c "$line"`,
      { cwd, stdin: 'pwd\n' },
      mounts,
    );
    expect(login).toMatchObject({ exit: 0, out: `${cwd}\n` });
  });

  test.each([
    ['TERM', 143],
    ['KILL', 137],
    ['INT', 130],
  ])('reports the signal %s that ended it in the machine, without a message', async (signal, exit) => {
    // ssh exits with 255 when a signal ended the remote shell.
    const other = "spawnSync('bash', ['--norc', '-c', process.argv[1]], { stdio: 'inherit' }).status ?? 255";
    const ssh = `${LAST}; exec ${process.execPath} -e "process.exit(require('node:child_process').${other})" -- "$line"`;
    const argv = ['shell', 'sh', '-c', `echo said >&2; kill -${signal} $$`];
    expect(await inGuest(argv, ssh)).toEqual({ exit, out: '', err: 'said\n' });
  });

  test('gets its arguments, the streams and the engine', async () => {
    const script = 'read line; echo "$DOCKER_HOST $line $*"; echo to-stderr >&2';
    const argv = ['shell', 'sh', '-c', script, 'x', '--', '--help', '-h', 'two words', ''];
    expect(await shell(argv, { stdin: 'hello\n' })).toEqual({
      exit: 0,
      out: 'unix://RUN/moby/docker.sock hello -- --help -h two words \n',
      err: 'to-stderr\n',
    });
  });

  test('loses one leading --', async () => {
    expect(await shell(['shell', '--', 'echo', '--', 'x'])).toEqual({ exit: 0, out: '-- x\n', err: '' });
  });

  test('rdctl flags before `shell` stay with rdctl', async () => {
    const { exit, out } = await shell(['--verbose', '--host=127.0.0.1', 'shell', 'echo', '--verbose']);
    expect({ exit, out }).toEqual({ exit: 0, out: '--verbose\n' });
  });

  test('without a command, $SHELL reads standard input', async () => {
    const own = join(temporaryDirectory(), 'own-shell');
    writeFileSync(own, '#!/bin/sh\necho own; exec /bin/sh "$@"\n');
    chmodSync(own, 0o755);
    const { exit, out } = await shell(['shell'], { stdin: 'echo $0; exit 3\n', env: { SHELL: own } });
    expect({ exit, out }).toEqual({ exit: 3, out: 'own\n/bin/sh\n' });
    expect(await shell(['shell'], { stdin: 'echo plain\n' })).toMatchObject({ exit: 0, out: 'plain\n' });
  });

  test('its exit status becomes that of the tool, without a message', async () => {
    expect(await shell(['shell', 'sh', '-c', 'exit 42'])).toEqual({ exit: 42, out: '', err: '' });
    expect(await shell(['shell', 'sh', '-c', 'kill -TERM $$'])).toEqual({ exit: 143, out: '', err: '' });
    expect(await shell(['shell', 'sh', '-c', 'kill -KILL $$'])).toEqual({ exit: 137, out: '', err: '' });
  });

  test('signals for the tool are forwarded, and it decides', async () => {
    const script = 'trap "echo got it; exit 9" TERM; echo ready; while :; do sleep 0.05; done';
    const outcome = await shell(['shell', 'sh', '-c', script], {
      onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGTERM')),
    });
    expect(outcome).toEqual({ exit: 9, out: 'ready\ngot it\n', err: '' });
  });

  test('a terminal interrupt does not end the tool before the command', async () => {
    const after = join(temporaryDirectory(), 'interrupted');
    const script = 'trap "" INT; echo ready; until [ -e "$1" ]; do sleep 0.02; done; echo still here';
    const outcome = await shell(['shell', 'sh', '-c', script, 'x', after], {
      onSpawn: (child) =>
        child.stdout?.once('data', () => {
          child.kill('SIGINT');
          writeFileSync(after, '');
        }),
    });
    expect(outcome).toEqual({ exit: 0, out: 'ready\nstill here\n', err: '' });
  });

  test('one that dies by a signal leaves the terminal as it was', async (context) => {
    if (!existsSync('/usr/bin/script')) return context.skip('script of util-linux is not installed');
    await using server = await scriptedServer(answers(status(), () => server.home));
    hostRecords(server.home);
    const rdctl = commandOf(tool.entry()).join(' ');
    const line = `stty -a > $A; ${rdctl} shell sh -c 'stty raw -echo; kill -KILL $$'; echo $? > $C; stty -a > $B`;
    const [A, B, C] = ['a', 'b', 'c'].map((name) => join(server.home, name));
    const ran = spawn('script', ['-qec', line, '/dev/null'], {
      env: { PATH: process.env.PATH, SHELL: '/bin/sh', ...server.env, A, B, C },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    await once(ran, 'exit');
    expect(readFileSync(C ?? '', 'utf8')).toBe('137\n');
    expect(readFileSync(A ?? '', 'utf8')).toMatch(/ echo /);
    expect(readFileSync(B ?? '', 'utf8')).toBe(readFileSync(A ?? '', 'utf8'));
  });

  test('one that does not exist', async () => {
    const { exit, out, err } = await shell(['shell', 'no-such-program']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: fork\/exec no-such-program: no such file or directory\n/);
  });

  describe('in the machine of another application', () => {
    /** An installation with a `limactl` that prints its arguments. */
    const foreign = async (limactl: string | undefined, argv: string[]) => {
      await using server = await scriptedServer(answers(status()));
      const home = mkdtempSync(join(tmpdir(), 'rdctl-foreign-'));
      const data = join(home, 'data', 'rancher-desktop');
      const connection = { user: 'u', password: 'p', port: server.port };
      writeConnection(join(data, 'rd-engine.json'), connection);
      const installed = join(home, 'app', 'resources', 'linux');
      if (limactl !== undefined) {
        for (const folder of ['bin', 'lima/bin']) mkdirSync(join(installed, folder), { recursive: true });
        mkdirSync(join(home, '.rd', 'bin'), { recursive: true });
        mkdirSync(join(data, 'lima'));
        writeFileSync(join(installed, 'bin', 'rdctl'), '');
        symlinkSync(join(installed, 'bin', 'rdctl'), join(home, '.rd', 'bin', 'rdctl'));
        writeFileSync(join(installed, 'lima', 'bin', 'limactl'), `#!/bin/sh\n${limactl}\n`, { mode: 0o755 });
      }
      const env = { HOME: home, XDG_DATA_HOME: join(home, 'data') };
      return await rdctlProgram(argv, { entry: tool.entry(), env });
    };
    const RUNNING = 'if [ "$1" = ls ]; then echo Running; else echo "$LIMA_HOME|$*"; exit 5; fi';

    test('runs through its limactl', async () => {
      const { exit, out, err } = await foreign(RUNNING, ['shell', 'uname', '-a']);
      expect({ exit, err }).toEqual({ exit: 5, err: '' });
      expect(out).toMatch(/\/data\/rancher-desktop\/lima\|shell 0 uname -a\n$/);
    });

    test.each([
      ['echo Stopped', /but it is current in state "Stopped"\.\n/],
      ['echo "no such instance" >&2', /^no such instance\n/],
      ['true', /^Underlying limactl check failed with no output\.\n/],
    ])('%s', async (script, message) => {
      const { exit, out, err } = await foreign(script, ['shell', 'true']);
      expect({ exit, out }).toEqual({ exit: 1, out: '' });
      expect(err).toMatch(message);
    });

    test('is refused without its programs', async () => {
      const { exit, err } = await foreign(undefined, ['shell', 'true']);
      expect(exit).toBe(3);
      expect(err).toMatch(
        /^Error: Cannot open a shell in the machine of Rancher Desktop: can't find the lima-home directory/,
      );
    });
  });
});
