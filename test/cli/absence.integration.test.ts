import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { processTable } from '../../src/os/process-table.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';

const tool = builtTool();
const PROFILE = JSON.stringify({
  apiVersion: 'rdctl/v1',
  kind: 'Profile',
  settings: { version: 19, images: { showAll: false } },
  state: 'started',
});

const at = (home: string) => toolAt(tool.entry(), home);

/** Accepts connections and never answers. */
async function silence(): Promise<number> {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

describe('a connection file without a service behind it', () => {
  test('leaves another program on that port alone, and starts our service', async () => {
    for (const argv of [
      ['start', '--driver', 'simulated'],
      ['apply', '-f', '-', '--driver', 'simulated'],
    ]) {
      await using server = await scriptedServer(() => ({ body: '<html>' }));
      const program = at(server.home);
      expect(await program(argv, PROFILE)).toMatchObject({ exit: 0 });
      const { port } = JSON.parse(readFileSync(join(server.home, 'app-engine.json'), 'utf8'));
      expect(port).not.toBe(server.port);
      expect(server.received.every(({ method }) => method === 'GET')).toBe(true);
      expect((await program(['status'])).out).toContain('simulated');
      expect(await program(['shutdown'])).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
    }
  });

  test('is rewritten when it is not JSON', async () => {
    const home = temporaryDirectory();
    writeFileSync(join(home, 'app-engine.json'), '{"user":');
    const seen = await rdctl(['list-settings'], { env: { RDCTL_HOME: home } });
    expect(seen.err).toMatch(
      /^Error: failed to get connection info: error parsing .*it is not JSON\nNo service is running; `rdctl start`/,
    );
    expect(await at(home)(['start', '--driver', 'simulated'])).toMatchObject({ exit: 0 });
  });

  test('is an error when flags point to another program', async () => {
    await using server = await scriptedServer(() => ({ body: '<html>' }));
    const flags = ['--host=127.0.0.1', '--port', String(server.port), '--user=u', '--password=p'];
    for (const argv of [['start'], ['apply', '-f', '-'], ['status']]) {
      const outcome = await rdctl([...argv, ...flags], { env: { RDCTL_HOME: temporaryDirectory() }, stdin: PROFILE });
      expect([argv, outcome]).toMatchObject([argv, { exit: 1, out: '' }]);
      expect(outcome.err).toMatch(/^Error: another program answers on /);
    }
  });
});

describe('a program that never answers', () => {
  test('is given up when the command times out', async () => {
    const flags = ['--port', String(await silence()), '--user=u', '--password=p'];
    const env = { RDCTL_HOME: temporaryDirectory() };
    const outcome = await rdctl(['apply', '-f', '-', '--timeout', '300ms', ...flags], { env, stdin: PROFILE });
    expect(outcome).toMatchObject({ exit: 4, out: '' });
    expect(outcome.err).toMatch(/^Error: 127\.0\.0\.1:\d+ did not answer within \d+ ms\n\S/);
  });
});

describe('a service without its connection file', () => {
  test.each(['lost', 'corrupt', 'leading elsewhere'])(
    '%s: every command reports it, and shutdown stops it',
    async (how) => {
      const home = temporaryDirectory();
      const program = at(home);
      const file = join(home, 'app-engine.json');
      expect((await program(['start', '--driver', 'simulated'])).exit).toBe(0);
      const { pid, port } = JSON.parse(readFileSync(file, 'utf8'));
      await using other = await scriptedServer(() => ({ body: '<html>' }));
      if (how === 'lost') rmSync(file);
      else if (how === 'corrupt') writeFileSync(file, 'oops');
      else writeConnection(file, { user: 'user', password: 'x', port: other.port });
      for (const argv of [['status'], ['start'], ['apply', '-f', '-'], ['plan', '-f', '-']]) {
        const { exit, out, err } = await program(argv, PROFILE);
        expect([argv, exit, out]).toEqual([argv, 1, '']);
        // The service is reached through its socket, and refuses the password.
        if (how === 'leading elsewhere') expect(err).toContain(`with the password of ${file}`);
        else expect(err).toContain(`pid ${pid}, port ${port}`);
        expect(err).toMatch(/`rdctl shutdown`.* `rdctl start`/);
      }
      const { exit, err } = await program(['shutdown']);
      expect(exit).toBe(0);
      expect(err).toMatch(/SIGTERM/);
      expect(await processTable.isAlive({ pid })).toBe(false);
      expect(other.received).toEqual([]);
      expect(await program(['start', '--driver', 'simulated'])).toMatchObject({ exit: 0 });
    },
  );
});

test('a service that was killed: reports what it left behind', async () => {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home };
  mkdirSync(join(home, 'state', 'service.lock'), { recursive: true });
  const entry = { pid: 2 ** 30, started: 'x', since: new Date().toISOString(), held: true };
  writeFileSync(join(home, 'state', 'service.lock', 'x.json'), JSON.stringify(entry));
  const state = { format: 1, driver: 'host', power: 'started', generation: 3 };
  writeFileSync(join(home, 'state', 'state.json'), JSON.stringify(state));
  const text = new RegExp(
    `The last service \\(pid ${2 ** 30}\\) exited without stopping its backend \\(driver host\\), which may still be running`,
  );
  expect(await rdctl(['status'], { env })).toMatchObject({ exit: 1, out: '', err: expect.stringMatching(text) });
  expect(await rdctl(['list-settings'], { env })).toMatchObject({ exit: 1, err: expect.stringMatching(text) });
});

test('a wrong password gets the same message from every command', async () => {
  const { env } = await startService();
  const wrong = { ...env, RDCTL_PASSWORD: 'wrong' };
  const commands = [
    ['status'],
    ['list-settings'],
    ['set', '--images.show-all'],
    ['plan', '-f', '-'],
    ['init'],
    ['start'],
  ];
  for (const argv of [...commands, ['apply', '-f', '-'], ['shutdown'], ['api', 'settings'], ['extension', 'ls']]) {
    const { exit, err } = await rdctl(argv, { env: wrong, stdin: PROFILE });
    expect([argv, exit]).toEqual([argv, 1]);
    expect(err).toMatch(
      // Commands that print a response of any status put the message after it.
      /^(?:Error: |Unauthorized\n)?401 Unauthorized: user\/password not accepted by http:\/\/127\.0\.0\.1:\d+ for the user "user" with the password of RDCTL_PASSWORD\nCorrect RDCTL_PASSWORD, or unset it to use the one in \S+app-engine\.json\.\n$/,
    );
  }
});
