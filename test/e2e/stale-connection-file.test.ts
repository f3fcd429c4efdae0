import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { processTable } from '../../src/os/process-table.ts';
import { type Outcome, rdctlProgram } from '../helpers/cli.ts';
import { freePort, isFree } from '../helpers/free-port.ts';
import { impostor } from '../helpers/impostor.ts';
import { writeConnection } from '../helpers/scripted-server.ts';

/** `nobody`, who has nothing to do with any service. */
const OTHER = 65_534;
/** An ordinary user; a uid is enough. */
const ORDINARY = 61_234;
/** In a profile and in its path: must not leak. */
const MARK = 'not-for-others';

/** Only root can start a program as another user; `.ci/run` is. With `RDCTL_REQUIRE_REAL=1` it must work. */
function cannotBeOthers(): boolean {
  const cannot = process.platform !== 'linux' || process.getuid?.() !== 0;
  if (cannot && process.env.RDCTL_REQUIRE_REAL === '1') throw new Error('only root on Linux can be two users');
  if (cannot) process.stderr.write('\nSKIPPED: only root on Linux can be two users\n');
  return cannot;
}

interface Victim {
  home: string;
  file: string;
  profile: string;
  /** What the file said about the killed service. */
  secrets: { user: string; password: string; port: number; pid: number };
  rdctl(...argv: string[]): Promise<Outcome>;
}

/** A home whose service was killed. */
async function killedService(uid: number): Promise<Victim> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-stale-'));
  const file = join(home, 'app-engine.json');
  const profile = join(home, `${MARK}.yaml`);
  const text = `apiVersion: rdctl/v1\nkind: Profile\nstate: started\nsettings:\n  version: 19\n  containerEngine: { allowedImages: { enabled: false, patterns: ["${MARK}"] } }\n`;
  writeFileSync(profile, text, { mode: 0o600 });
  for (const path of [home, profile]) chownSync(path, uid, uid);
  const env = { RDCTL_HOME: home, HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
  const rdctl = (...argv: string[]) => rdctlProgram(argv, { env, ...(uid === 0 ? {} : { uid }) });
  onTestFinished(async () => {
    await rdctl('shutdown');
    rmSync(home, { recursive: true, force: true });
  });
  const started = await rdctl('start', `--port=${await freePort()}`);
  expect(started).toMatchObject({ exit: 0 });
  const secrets = JSON.parse(readFileSync(file, 'utf8'));
  process.kill(secrets.pid, 'SIGKILL');
  await expect.poll(() => processTable.isAlive({ pid: secrets.pid })).toBe(false);
  // A process counts as dead when its first thread has ended; the others hold the port slightly longer.
  await expect.poll(() => isFree(secrets.port)).toBe(true);
  return { home, file, profile, secrets, rdctl };
}

/** In an order in which only the last one recreates the file. */
const commands = ({ profile }: Victim, marker: string): string[][] => [
  ['status'],
  ['list-settings'],
  ['set', '--container-engine.name=containerd'],
  ['api', '/v1/settings', '-X', 'PUT', '-b', `{"version":19,"mark":"${MARK}"}`],
  ['shell', 'touch', marker],
  ['plan', '-f', profile],
  ['snapshot', 'list'],
  ['apply', '-f', profile],
];

const users = [
  { who: 'root', uid: 0 },
  { who: 'an ordinary user', uid: ORDINARY },
];

describe.each(users)('the service of $who was killed, and another user listens on its port', ({ uid }) => {
  test.each([
    { left: 'the socket of the service', remove: false },
    { left: 'no socket', remove: true },
  ])(
    'with $left left: nothing is sent there, nothing it answers is run, and the file is reported as stale',
    async ({ remove }) => {
      if (cannotBeOthers()) return;
      const victim = await killedService(uid);
      const { home, file, secrets, rdctl } = victim;
      const socket = join(home, 'state', 'run', 'service.sock');
      expect(existsSync(socket)).toBe(true);
      if (remove) rmSync(socket);
      const markers = [join(home, 'ran'), join(home, 'said')];
      const other = await impostor(secrets.port, { uid: OTHER, command: `touch ${markers[1]}` });

      for (const argv of commands(victim, markers[0] ?? '')) {
        const { out, err } = await rdctl(...argv);
        expect(`${out}${err}`, argv.join(' ')).toContain(
          `${file} is stale: the process that wrote it (pid ${secrets.pid})`,
        );
        expect(err, argv.join(' ')).toContain('rdctl start');
      }
      const got = other.received();
      if (remove) expect(other.connections()).toBeGreaterThan(0);
      else expect(other.connections()).toBe(0);
      // A challenge that contains nothing but a random number.
      const questions =
        /^(?:GET \/v2\/proof\?nonce=[0-9a-f]{64} HTTP\/1\.1\r\nHost: [\d.:]+\r\nConnection: keep-alive\r\n\r\n)*$/;
      expect(got).toMatch(questions);
      expect(markers.filter((path) => existsSync(path))).toEqual([]);
      // The last one started a service of its own, on another port.
      expect(JSON.parse(readFileSync(file, 'utf8')).port).not.toBe(secrets.port);
      expect((await rdctl('list-settings')).exit).toBe(0);
      expect(other.received()).toBe(got);
    },
  );
});

test.each(users)(
  'a shutdown of a killed service of $who sends nothing there, and removes the stale file',
  async ({ uid }) => {
    if (cannotBeOthers()) return;
    const { home, file, secrets, rdctl } = await killedService(uid);
    rmSync(join(home, 'state', 'run', 'service.sock'));
    const other = await impostor(secrets.port, { uid: OTHER });
    const { exit, out, err } = await rdctl('shutdown');
    expect(`${out}${err}`).toContain(`${file} is stale: the process that wrote it (pid ${secrets.pid})`);
    expect(exit).toBe(0);
    expect(other.received()).not.toContain('Authorization');
    // What runs is stopped, and nothing points to the port any more.
    expect((await rdctl('list-settings')).err).not.toContain('is stale');
  },
);

test('a socket that another user created is not used', async () => {
  if (cannotBeOthers()) return;
  const { home, secrets, rdctl } = await killedService(0);
  const run = join(home, 'state', 'run');
  const other = await impostor(secrets.port, { uid: OTHER });
  for (const spoil of [() => chmodSync(run, 0o777), () => chownSync(run, OTHER, OTHER)]) {
    spoil();
    expect((await rdctl('list-settings')).err).toContain('did not prove that it is the service');
  }
  expect(other.received()).not.toContain('Authorization');
});

describe('a connection file', () => {
  test.each([
    [
      'of another user',
      (file: string) => chownSync(file, OTHER, OTHER),
      / belongs to another user \((?:owner nobody|uid 65534)/,
    ],
    [
      'that others can write',
      (file: string) => chmodSync(file, 0o666),
      /can be written by other users|other users can write it/,
    ],
  ])('%s is not trusted, even when it is named', async (_, spoil, message) => {
    if (cannotBeOthers()) return;
    const home = mkdtempSync(join(tmpdir(), 'rdctl-theirs-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const port = await freePort();
    const other = await impostor(port, { uid: OTHER });
    const file = join(home, 'app-engine.json');
    writeConnection(file, { user: 'user', password: MARK, port, pid: process.pid });
    spoil(file);
    for (const argv of [['list-settings'], ['--config-path', file, 'list-settings']]) {
      const { exit, err } = await rdctlProgram(argv, { env: { RDCTL_HOME: home } });
      expect(exit).toBe(1);
      // The rule for the whole home, or the one for a file that is named.
      expect(err).toMatch(message);
      expect(err).toContain(file);
    }
    expect(other.connections()).toBe(0);
  });
});

describe("the port in another application's file", () => {
  const foreign = async (uid: number, pid?: number) => {
    const home = mkdtempSync(join(tmpdir(), 'rdctl-foreign-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const port = await freePort();
    const other = await impostor(port, { uid });
    const data = join(home, 'data', 'rancher-desktop');
    const file = join(data, 'rd-engine.json');
    writeConnection(file, { user: 'user', password: MARK, port, ...(pid === undefined ? {} : { pid }) });
    mkdirSync(join(data, 'lima'));
    const profile = join(home, `${MARK}.yaml`);
    writeFileSync(profile, `version: 19\ncontainerEngine: { name: moby }\n`);
    const env = { HOME: home, XDG_DATA_HOME: join(home, 'data'), RDCTL_DRIVER: 'simulated' };
    return { file, profile, other, rdctl: (...argv: string[]) => rdctlProgram(argv, { env }) };
  };

  test('was taken by another user: nothing is sent there', async () => {
    if (cannotBeOthers()) return;
    // Its process is a living one of this user: the socket reveals more.
    const { file, profile, other, rdctl } = await foreign(OTHER, process.pid);
    const named = ['--target', 'rancher-desktop'];
    for (const argv of [
      ['list-settings'],
      ['set', '--container-engine.name=moby'],
      ['plan', '-f', profile],
      ['api', '/v1/settings'],
      ['shell', 'true'],
      ['shutdown', ...named],
      ['snapshot', 'list'],
      ['status'],
      ['--config-path', file, 'list-settings'],
      ['--config-path', file, 'shutdown'],
    ]) {
      const { out, err } = await rdctl(...argv);
      expect(`${out}${err}`, argv.join(' ')).toContain(
        `${file} is stale: the process that wrote it (pid ${process.pid})`,
      );
    }
    expect(other.received()).toBe('');
  });

  test('belongs to this user: it is used', async () => {
    if (cannotBeOthers()) return;
    const { other, rdctl } = await foreign(process.getuid?.() ?? 0);
    expect((await rdctl('api', '/v1/settings')).exit).toBe(0);
    expect(other.received()).toContain('Authorization: Basic ');
  });
});
