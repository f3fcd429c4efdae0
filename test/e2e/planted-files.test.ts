import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import type { Outcome } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

const { entry, folder } = builtTool();

/** Another user of this computer. */
const NEIGHBOUR = 65534;
/** A user without an account here, in a group of the same number, as on systems with a umask of 002. */
const USER = 54_321;

/** Only root can create files of another user; `.ci/run` is. With `RDCTL_REQUIRE_REAL=1` it must work. */
function cannotBeOthers(): boolean {
  const cannot = process.platform !== 'linux' || process.getuid?.() !== 0;
  if (cannot && process.env.RDCTL_REQUIRE_REAL === '1') throw new Error('other users can be had by root on Linux only');
  if (cannot) process.stderr.write('\nSKIPPED: other users can be had by root on Linux only\n');
  return cannot;
}

interface As {
  uid?: number;
  umask?: string;
  env?: Record<string, string>;
}

/** The built tool as a given user; a service of that home is shut down at the end. */
function toolOn(home: string, { uid = 0, umask = '022', env = {} }: As = {}) {
  const rdctl = (...argv: string[]): Promise<Outcome> =>
    new Promise((done, fail) => {
      const child = spawn('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...commandOf(entry()), ...argv], {
        env: { PATH: process.env.PATH, HOME: '/nonexistent', RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: '/',
        ...(uid === 0 ? {} : { uid, gid: uid }),
      });
      const text = { out: '', err: '' };
      child.stdout.on('data', (part) => {
        text.out += part;
      });
      child.stderr.on('data', (part) => {
        text.err += part;
      });
      child.once('error', fail);
      child.once('close', (code) => done({ exit: code ?? -1, ...text }));
    });
  onTestFinished(async () => void (await rdctl('shutdown')));
  return rdctl;
}

/** As the other user does it, with no more permissions than that. */
function byNeighbour(script: string, ...argv: string[]): void {
  execFileSync('sh', ['-c', script, 'sh', ...argv], { uid: NEIGHBOUR, gid: NEIGHBOUR, cwd: '/' });
}

/** Everything below a directory. */
function below(directory: string): string[] {
  return readdirSync(directory, { recursive: true }).map(String).sort();
}

/** A directory in `/tmp`, which is shared with others. */
function shared(mode: number): string {
  const directory = mkdtempSync(join(tmpdir(), 'rdp-'));
  chmodSync(directory, mode);
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe.skipIf(cannotBeOthers())('beside another user', () => {
  test.each([
    ['start'],
    ['serve', '--port=0'],
    ['list-settings'],
    ['plan', '-f', 'PROFILE'],
    ['apply', '-f', 'PROFILE'],
    ['explain', 'containerEngine.name'],
    ['status'],
    ['image', 'list'],
    ['snapshot', 'list'],
    ['factory-reset', '--yes'],
  ])('%s %s refuses a home that the other can write', async (...command) => {
    const home = shared(0o777);
    const profile = join(temporaryDirectory(), 'p.yaml');
    writeFileSync(profile, 'version: 19\nimages: { namespace: mine }\n');
    byNeighbour(
      'umask 0; mkdir -p "$1/config" "$1/state"; echo \'{"version":19,"images":{"namespace":"theirs"}}\' >"$1/config/settings.json"; echo \'{"format":1,"driver":"simulated","power":"started","generation":7}\' >"$1/state/state.json"; echo \'{"user":"user","password":"theirs","port":9,"pid":1}\' >"$1/app-engine.json"',
      home,
    );
    const before = below(home);
    const { exit, out, err } = await toolOn(home)(...command.map((word) => (word === 'PROFILE' ? profile : word)));
    expect(err).toContain(`${home} can be written by other users (owner root, mode 0777)`);
    expect(err).toContain(`Run \`chmod go-w ${home}\`. Otherwise: set RDCTL_HOME to`);
    expect(exit).not.toBe(0);
    expect(out).not.toContain('theirs');
    expect(below(home)).toEqual(before);
  });

  test('a home in /tmp that the other user created first is refused, and so is their link there', async () => {
    const base = shared(0o1777);
    const mine = join(base, 'mine');
    mkdirSync(mine, { mode: 0o700 });
    byNeighbour('mkdir -m 700 "$1/made"; ln -s "$1/mine" "$1/link"', base);
    for (const name of ['made', 'link']) {
      const { exit, err } = await toolOn(join(base, name))('start');
      expect(exit).toBe(1);
      expect(err).toContain(`${join(base, name)} belongs to another user (owner nobody, `);
    }
    expect(below(base)).toEqual(['link', 'made', 'mine']);
  });

  test("root is refused the other user's home, and leaves no root-owned files there", async () => {
    const home = shared(0o755);
    chownSync(home, NEIGHBOUR, NEIGHBOUR);
    byNeighbour('mkdir -p "$1/.local/share" "$1/.config"', home);
    const { exit, err } = await toolOn('', { env: { HOME: home, RDCTL_DRIVER: 'host' } })('start');
    expect(exit).toBe(1);
    expect(err).toMatch(/ belongs to another user \(owner nobody, mode 0755, and you are root\), so /);
    expect(err).toContain('`sudo -H`');
    expect(below(home)).toEqual(['.config', '.local', '.local/share']);
  });

  test('links and pipes in place of logs are not followed', async () => {
    const home = shared(0o700);
    const victim = join(temporaryDirectory(), 'victim');
    writeFileSync(victim, 'of root\n');
    mkdirSync(join(home, 'logs'));
    const link = join(home, 'logs', 'service.log');
    symlinkSync(victim, link);
    const rdctl = toolOn(home);
    expect(await rdctl('start')).toMatchObject({ exit: 0 });
    expect((await rdctl('status', '-o', 'json')).out).toContain('Cannot write the log: could not open');
    expect((await rdctl('shutdown')).exit).toBe(0);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    const output = join(home, 'logs', 'service-output.log');
    for (const plant of [() => symlinkSync(victim, output), () => execFileSync('mkfifo', [output])]) {
      rmSync(output);
      plant();
      const { exit, err } = await rdctl('start');
      expect(exit).toBe(1);
      expect(err).toContain(output);
    }
    expect(readFileSync(victim, 'utf8')).toBe('of root\n');
  });

  test.each(['state/state.json', 'state/port-forwards.json'])(
    'a link in place of %s is not read as state',
    async (name) => {
      const home = shared(0o700);
      const theirs = join(shared(0o755), 'theirs.json');
      writeFileSync(theirs, '{"format":1,"driver":"simulated","power":"stopped","generation":7}');
      mkdirSync(join(home, 'state'));
      symlinkSync(theirs, join(home, name));
      const { exit, err } = await toolOn(home)('start');
      expect(exit).toBe(1);
      expect(err).toContain(join(home, name));
      expect(err).toContain('symbolic link');
    },
  );

  test('a saved plan changed by the other user is refused', async () => {
    const home = shared(0o700);
    const rdctl = toolOn(home);
    const directory = shared(0o777);
    const plan = join(directory, 'plan.json');
    const profile = join(temporaryDirectory(), 'p.yaml');
    writeFileSync(profile, 'version: 19\nimages: { namespace: mine }\n');
    expect((await rdctl('start')).exit).toBe(0);
    const made = await rdctl('plan', '-f', profile, '--out-file', plan);
    expect(made).toMatchObject({ exit: 0, err: expect.stringContaining('so `rdctl apply` refuses the plan there') });
    expect(statSync(plan).mode & 0o777).toBe(0o600);
    // They could neither read it nor replace it.
    byNeighbour('echo "{}" >"$1/mine"; mv -f "$1/mine" "$1/plan.json"', directory);
    const refused = await rdctl('apply', plan);
    expect(refused).toMatchObject({ exit: 3, err: expect.stringContaining(`chmod go-w ${directory}`) });
    chmodSync(directory, 0o755);
    expect(await rdctl('apply', plan)).toMatchObject({
      exit: 3,
      err: expect.stringContaining(`${plan} belongs to another user (owner nobody`),
    });
    expect((await rdctl('list-settings')).out).not.toContain('mine');
  });

  test('a deployment profile that the other user can write blocks the start of the service', async () => {
    const home = shared(0o700);
    const config = shared(0o700);
    const profile = join(config, 'rancher-desktop.locked.json');
    writeFileSync(profile, '{"version":19,"containerEngine":{"name":"moby"}}');
    chmodSync(profile, 0o666);
    const mine = join(temporaryDirectory(), 'p.yaml');
    writeFileSync(mine, 'version: 19\nimages: { namespace: mine }\n');
    const rdctl = toolOn(home, { env: { XDG_CONFIG_HOME: config } });
    for (const command of [
      ['start'],
      ['explain', 'containerEngine.name'],
      ['import-profile', '--from-system'],
      ['plan', '-f', mine],
    ]) {
      const { exit, err } = await rdctl(...command);
      expect(exit).not.toBe(0);
      expect(err).toContain(`${profile} can be written by other users (owner root, mode 0666)`);
      expect(err).toContain(`chmod go-w ${profile}`);
    }
    expect(existsSync(join(home, 'app-engine.json'))).toBe(false);
    chmodSync(profile, 0o644);
    expect((await rdctl('start')).exit).toBe(0);
  });
});

/** What a start prints when there is nothing else to report. */
const STARTED = expect.stringMatching(/^Service running: [^\n]*\n$/);

describe.skipIf(cannotBeOthers())('silently', () => {
  const works = async (rdctl: ReturnType<typeof toolOn>) => {
    expect(await rdctl('start')).toMatchObject({ exit: 0, err: STARTED });
    expect(await rdctl('set', '--containers.show-all=false')).toMatchObject({ exit: 0, err: '' });
    const status = JSON.parse((await rdctl('status', '-o', 'json')).out);
    expect(status.notices ?? []).toEqual([]);
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect(await rdctl('explain', 'images.namespace')).toMatchObject({ exit: 0, err: '' });
  };

  test.each([0o755, 0o750, 0o700])('a home of mode %o works for any user', async (mode) => {
    for (const uid of [0, USER]) {
      const home = shared(mode);
      chownSync(home, uid, uid);
      chmodSync(folder(), 0o755);
      await works(toolOn(home, { uid }));
    }
  });

  test('a user with umask 002 and a private group works', async () => {
    const base = shared(0o775);
    chownSync(base, USER, USER);
    await works(toolOn(join(base, 'home', 'rdctl'), { uid: USER, umask: '002' }));
  });

  test('a umask of 0 creates nothing that others can write', async () => {
    const home = shared(0o755);
    chownSync(home, USER, USER);
    const rdctl = toolOn(home, { uid: USER, umask: '000' });
    expect(await rdctl('start')).toMatchObject({ exit: 0, err: STARTED });
    expect((await rdctl('snapshot', 'create', 'one')).exit).toBe(0);
    const open = below(home).filter((name) => {
      const facts = lstatSync(join(home, name));
      return !facts.isSymbolicLink() && (facts.mode & 0o022) !== 0;
    });
    expect(open).toEqual([]);
  });

  test('a new home in /tmp is created for the user alone', async () => {
    const base = shared(0o1777);
    const home = join(base, 'new');
    await works(toolOn(home, { uid: USER }));
    expect(statSync(home).mode & 0o777).toBe(0o700);
  });

  test("a home that is a link to the user's directory works", async () => {
    const base = shared(0o755);
    mkdirSync(join(base, 'real'), { mode: 0o700 });
    symlinkSync('real', join(base, 'home'));
    for (const name of ['.', 'real']) chownSync(join(base, name), USER, USER);
    await works(toolOn(join(base, 'home'), { uid: USER }));
  });
});
