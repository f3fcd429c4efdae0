import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { fingerprint, type UserHome, userHome } from '../helpers/user-home.ts';

const { entry, application } = builtTool();
const reason = await whyNoRealEngine();
const COMPAT = { RDCTL_COMPAT: 'rancher-desktop' };

const data = (user: UserHome, ...names: string[]) => user.at('.local', 'share', 'rancher-desktop', ...names);
const config = (user: UserHome, ...names: string[]) => user.at('.config', 'rancher-desktop', ...names);

/** As the other application leaves it. */
function originalHome(user: UserHome): void {
  mkdirSync(data(user, 'lima', '0'), { recursive: true });
  writeFileSync(data(user, 'lima', '0', 'disk'), 'of a virtual machine');
  mkdirSync(config(user), { recursive: true });
  const settings = { version: 10, containerEngine: { name: 'moby' }, kubernetes: { enabled: false } };
  writeFileSync(config(user, 'settings.json'), JSON.stringify(settings));
}

/** A port of its own: the one that scripts know may be in use on this computer. */
const PORT = String(await freePort());
const START = ['start', '--driver', 'simulated', '--wait', '--port', PORT];

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

describe('drop-in mode', () => {
  test('a script written for the other application finds the service by its file', async () => {
    const user = userHome(entry(), COMPAT);
    expect(await user.rdctl(...START)).toMatchObject({ exit: 0 });
    const file = data(user, 'rd-engine.json');
    const { user: name, password, port } = JSON.parse(readFileSync(file, 'utf8'));
    const answer = await fetch(`http://127.0.0.1:${port}/v1/settings`, {
      headers: { Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` },
    });
    expect(await answer.json()).toMatchObject({ version: 19 });
    expect(JSON.parse(readFileSync(config(user, 'settings.json'), 'utf8'))).toMatchObject({ version: 19 });
    expect(readFileSync(data(user, 'logs', 'background.log'), 'utf8')).toContain(`listens on port ${port}`);
    expect(existsSync(user.at('.local', 'share', 'rdctl'))).toBe(false);

    // Our own tool recognizes it as ours, even when only the file is given.
    expect(await user.rdctl('set', '--container-engine', 'containerd')).toMatchObject({ exit: 0 });
    expect(await user.rdctl('shutdown')).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
    expect(await user.rdctl('reset', '--factory')).toMatchObject({ exit: 0 });
    expect(existsSync(data(user))).toBe(false);
  });

  test('directories of the other application are left alone without --adopt', async () => {
    const user = userHome(entry(), COMPAT);
    originalHome(user);
    const before = fingerprint(user.home);
    for (const argv of [START, ['serve', '--driver', 'simulated', '--port', PORT], ['reset', '--factory']]) {
      const { exit, out, err } = await user.rdctl(...argv);
      expect([argv, exit, out]).toEqual([argv, 3, '']);
      expect(err).toContain('made by Rancher Desktop');
      expect(err).toContain('--adopt');
    }
    // The log that scripts read contains the two starts, and nothing else was added.
    const log = data(user, 'logs', 'background.log');
    expect(
      readFileSync(log, 'utf8').match(/Error Starting Rancher Desktop\n\n.*made by Rancher Desktop/g),
    ).toHaveLength(2);
    rmSync(data(user, 'logs'), { recursive: true });
    expect(fingerprint(user.home)).toEqual(before);
  });

  test('settings written by a script before the first start are adopted', async () => {
    const user = userHome(entry(), COMPAT);
    mkdirSync(config(user), { recursive: true });
    const provisioned = JSON.stringify({ version: 10, kubernetes: { enabled: false }, images: { namespace: 'mine' } });
    writeFileSync(config(user, 'settings.json'), provisioned);
    // Earlier failed starts leave them for the next one to adopt.
    const { exit: refused } = await user.rdctlWith({ env: { RDCTL_DRIVER: 'nonsense' } }, 'start', '--port', PORT);
    expect(refused).toBe(1);
    const argv = ['--kubernetes.enabled=x'];
    expect(await rdctlProgram(argv, { entry: application(), env: user.env })).toMatchObject({ exit: 1 });
    const log = readFileSync(data(user, 'logs', 'background.log'), 'utf8');
    expect(log.match(/Fatal Error:\nError Starting Rancher Desktop\n/g)).toHaveLength(2);

    const { exit, err } = await user.rdctl(...START);
    expect([exit, err]).toEqual([0, expect.stringContaining('was there before the first start and is in force')]);
    expect(JSON.parse((await user.rdctl('list-settings')).out)).toMatchObject({
      kubernetes: { enabled: false },
      images: { namespace: 'mine' },
    });
    const copy = readdirSync(config(user)).find((name) => name.startsWith('settings.before-rdctl-')) ?? '';
    expect(readFileSync(config(user, copy), 'utf8')).toBe(provisioned);
    await user.rdctl('shutdown');
    expect(await user.rdctl('reset', '--factory')).toMatchObject({ exit: 0 });
    expect(readdirSync(config(user))).toEqual([copy]);
  });

  test('with --adopt its settings are kept in use, with a backup copy', async () => {
    const user = userHome(entry(), COMPAT);
    originalHome(user);
    const original = readFileSync(config(user, 'settings.json'), 'utf8');
    const { exit, err } = await user.rdctl(...START, '--adopt');
    expect(exit).toBe(0);
    const copy = readdirSync(config(user)).find((name) => name.startsWith('settings.before-rdctl-')) ?? '';
    expect(err).toContain(copy);
    expect(readFileSync(config(user, copy), 'utf8')).toBe(original);
    const settings = JSON.parse((await user.rdctl('list-settings')).out);
    expect(settings).toMatchObject({ version: 19, containerEngine: { name: 'moby' }, kubernetes: { enabled: false } });
    expect(readFileSync(data(user, 'lima', '0', 'disk'), 'utf8')).toBe('of a virtual machine');
    await user.rdctl('shutdown');
    // Once is enough.
    expect(await user.rdctl(...START)).toMatchObject({ exit: 0 });
  });

  test('a start while the other application runs is refused', async () => {
    const user = userHome(entry(), COMPAT);
    const server = createServer();
    const port = await listen(server);
    onTestFinished(() => void server.close());
    expect(await user.rdctl(...START)).toMatchObject({ exit: 0 });
    await user.rdctl('shutdown');
    writeFileSync(data(user, 'rd-engine.json'), JSON.stringify({ user: 'user', password: 'theirs', port, pid: 1 }));
    const { exit, err } = await user.rdctl('serve', '--driver', 'simulated', '--port', PORT);
    expect(exit).toBe(1);
    expect(err).toContain(`Rancher Desktop runs (port ${port}`);
    expect(readFileSync(data(user, 'rd-engine.json'), 'utf8')).toContain('theirs');
    expect(readFileSync(data(user, 'logs', 'background.log'), 'utf8')).toContain('Error Starting Rancher Desktop');
  });

  test('a bad deployment profile is reported where scripts look for it', async () => {
    const user = userHome(entry(), COMPAT);
    mkdirSync(user.at('.config'), { recursive: true });
    writeFileSync(user.at('.config', 'rancher-desktop.defaults.json'), '{}');
    const logs = user.at('some-logs', 'of-a-run');
    const { exit } = await user.rdctlWith({ env: { RD_LOGS_DIR: logs } }, ...START);
    expect(exit).toBe(1);
    const text = readFileSync(join(logs, 'background.log'), 'utf8');
    expect(text).toContain('Fatal Error:\nFailed to load the deployment profile\n');
    expect(text).toContain('no version specified');
  });

  test('any other value of the variable is refused', async () => {
    const user = userHome(entry());
    const { exit, err } = await rdctlProgram(['paths'], { entry: entry(), env: { ...user.env, RDCTL_COMPAT: 'yes' } });
    expect(exit).toBe(1);
    expect(err).toContain('the only valid value is "rancher-desktop"');
  });
});

test.skipIf(reason !== undefined)("names in the user's environment are those of the other application", async () => {
  const user = userHome(entry(), COMPAT);
  writeFileSync(user.at('.bashrc'), '# mine\n');
  for (const name of ['share', 'state']) mkdirSync(user.at('.local', name), { recursive: true });
  mkdirSync(user.at('.config'));
  const before = fingerprint(user.home);
  expect(await user.rdctl('start', '--driver', 'host', '--wait', '--port', PORT)).toMatchObject({ exit: 0 });
  const digest = 'b547d66a5de60e5f0843aba28283a8875c2ad72e99ba076060ef9ec7c09917c8';
  const context = user.at('.docker', 'contexts', 'meta', digest, 'meta.json');
  await expect.poll(() => existsSync(context), { timeout: 10_000 }).toBe(true);
  // It is selected after it is created.
  await expect.poll(() => existsSync(user.at('.docker', 'config.json')), { timeout: 10_000 }).toBe(true);
  expect(JSON.parse(readFileSync(user.at('.docker', 'config.json'), 'utf8'))).toEqual({
    currentContext: 'rancher-desktop',
  });
  const text = readFileSync(user.at('.bashrc'), 'utf8');
  expect(text).toContain('### MANAGED BY RANCHER DESKTOP START (DO NOT EDIT)\n');
  expect(text).toContain('export PATH="$HOME/.rd/bin:$PATH"');
  expect(existsSync(user.at('.rd', 'bin', 'rdctl'))).toBe(true);
  expect(await user.rdctl('reset', '--factory', '--cache')).toMatchObject({ exit: 0 });
  expect(fingerprint(user.home)).toEqual(before);
});

function listensAt(server: Server, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
}

test.skipIf(reason !== undefined)(
  'leftovers of a killed service are stopped and reset while another program has its port and a profile has an error',
  { timeout: 120_000 },
  async () => {
    const user = userHome(entry(), COMPAT);
    const driver = user.at('.local', 'state', 'rancher-desktop', 'drivers', 'host');
    const locked = user.at('.config', 'rancher-desktop.locked.json');
    const file = data(user, 'rd-engine.json');
    for (const argv of [['shutdown'], ['reset', '--factory']]) {
      rmSync(locked, { force: true });
      expect(await user.rdctl('start', '--driver', 'host', '--wait', '--port', PORT)).toMatchObject({ exit: 0 });
      const { pid } = JSON.parse(readFileSync(file, 'utf8'));
      process.kill(pid, 'SIGKILL');
      const other = createHttpServer((_, answer) => void answer.end('<html>'));
      // The kernel takes a moment to release the port.
      await expect.poll(() => listensAt(other, Number(PORT)), { timeout: 10_000 }).toBe(true);
      try {
        writeFileSync(locked, '{"version":19,"kubernetes":{"enabled":"x"}}');
        expect(await user.rdctl('start', '--port', PORT)).toMatchObject({ exit: 1, out: '' });
        expect((await hostTraces(driver)).length).toBeGreaterThan(0);
        const { exit, err } = await user.rdctl(...argv);
        expect([argv, exit, err]).toEqual([argv, 0, expect.stringContaining('taking it over to stop it.')]);
        const { tag } = hostPlaces(driver);
        const traces = (await hostTraces(driver)).filter((line) => !line.startsWith('-A RDCTL-') || line.includes(tag));
        expect(traces).toEqual([]);
        expect(existsSync(config(user, 'settings.json'))).toBe(argv[0] === 'shutdown');
      } finally {
        await new Promise((resolve) => other.close(resolve));
      }
    }
  },
);
