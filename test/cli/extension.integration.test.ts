import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { idOf } from '../../src/features/extensions/directory.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { rdctl, type Stage } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

async function stage(options: Parameters<typeof startService>[0] = {}) {
  const service = await startService(options);
  await service.converged();
  return {
    ...service,
    run: (argv: string[], more: Stage = {}) => rdctl(['extension', ...argv], { env: service.env, ...more }),
  };
}

const GROUP_ERROR =
  /^Error: no subcommand given\.\n\nUsage: rdctl extension \[install \| uninstall \| list\] \[options\.\.\.\]\n/;

describe('rdctl extension', () => {
  test('installs, lists, replaces and uninstalls, with the messages that scripts match', async () => {
    const { run } = await stage();
    expect(await run(['ls'])).toEqual({ exit: 0, out: 'No extensions are installed.\n', err: '' });
    expect(await run(['install', 'simulated/hello:1.0.0', '--force'])).toEqual({
      exit: 0,
      out: 'Installing image simulated/hello:1.0.0: Created\n',
      err: '',
    });
    expect((await run(['install', 'simulated/hello:1.0.0'])).out).toBe('Installing image simulated/hello:1.0.0: \n');
    expect((await run(['install', 'simulated/hello'])).out).toBe('Installing image simulated/hello: Created\n');
    expect((await run(['install', 'simulated/panel:v1'])).out).toBe('Installing image simulated/panel:v1: Created\n');
    expect(await run(['list'])).toEqual({
      exit: 0,
      out: 'Extension IDs\n\nsimulated/hello:1.1.0\nsimulated/panel:v1\n',
      err: '',
    });
    expect((await run(['uninstall', 'simulated/hello'])).out).toBe(
      'Uninstalling image simulated/hello: Deleted simulated/hello\n',
    );
    expect(await run(['uninstall', 'simulated/hello'])).toEqual({
      exit: 0,
      out: 'Uninstalling image simulated/hello: \n',
      err: 'note: nothing to do, simulated/hello is not installed\n',
    });
    const { out } = await run(['ls', '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({ 'simulated/panel': { version: 'v1', labels: expect.any(Object) } });
  });

  test('prints the status as JSON, and the answer with its reason on stderr', async () => {
    const { run } = await stage();
    expect(await run(['install', 'simulated/broken'])).toEqual({
      exit: 1,
      out: '{"message":"422 Unprocessable Entity"}\n',
      err: 'The image simulated/broken has invalid extension metadata\nreason: metadata.json: "icon" is missing\n',
    });
    expect(await run(['install', 'a b&c=d'])).toMatchObject({ exit: 1, out: '{"message":"403 Forbidden"}\n' });
  });

  test('reports that no engine has run yet, with only the status for a list', async () => {
    const { run } = await stage({ power: 'stopped' });
    expect(await run(['install', 'simulated/hello'])).toEqual({
      exit: 1,
      out: '{"message":"503 Service Unavailable"}\n',
      err: 'Extension manager is not ready yet.\n',
    });
    expect(await run(['ls'])).toEqual({ exit: 1, out: '{"message":"503 Service Unavailable"}\n', err: '' });
  });

  test('shows progress on a terminal, and clears the line', async () => {
    const { run } = await stage();
    const { out, err } = await run(['install', 'simulated/hello'], { progress: true });
    expect(out).toBe('Installing image simulated/hello: Created\n');
    expect(err).toBe('Fetching simulated/hello …\r\u001b[2K');
  });

  test.each([[[]], [['frobnicate']]])('without a subcommand: %j', async (argv) => {
    const { exit, out, err } = await rdctl(['extension', ...argv]);
    expect([exit, out]).toEqual([1, '']);
    expect(err).toMatch(GROUP_ERROR);
  });

  test('works with the compatible application, and escapes what a URL cannot hold', async () => {
    await using server = await scriptedServer(({ method, path }) => {
      if (method === 'GET') return { body: '{"b/x":{"version":"2"},"A/y":{"version":"1"}}' };
      return path.includes('uninstall')
        ? { status: 201, body: 'Deleted a b&c=d' }
        : { status: 500, body: 'Internal Server Error' };
    });
    const run = (...argv: string[]) => rdctl(['extension', ...argv], { env: server.env });
    expect((await run('list')).out).toBe('Extension IDs\n\nA/y:1\nb/x:2\n');
    expect((await run('uninstall', 'a b&c=d')).out).toBe('Uninstalling image a b&c=d: Deleted a b&c=d\n');
    expect(server.received.at(-1)).toMatchObject({ method: 'POST', path: '/v1/extensions/uninstall?id=a%20b%26c%3Dd' });
    expect(await run('install', 'x')).toEqual({
      exit: 1,
      out: '{"message":"500 Internal Server Error"}\n',
      err: 'Internal Server Error\n',
    });
  });

  test('reports an answer that is not a list', async () => {
    await using server = await scriptedServer(() => ({ body: 'hello' }));
    const { exit, err } = await rdctl(['extension', 'ls'], { env: server.env });
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: failed to unmarshal extension list API response: /);
  });

  test('takes exactly one image', async () => {
    const { run } = await stage();
    expect((await run(['install'])).err).toMatch(/^Error: accepts 1 arg\(s\), received 0\n/);
    expect((await run(['uninstall', 'a', 'b'])).err).toMatch(/^Error: accepts 1 arg\(s\), received 2\n/);
  });
});

describe('extensions in a profile', () => {
  const profile = (installed: Record<string, string | null>) =>
    JSON.stringify({
      apiVersion: 'rdctl/v1',
      kind: 'Profile',
      settings: { version: 19, application: { extensions: { installed } } },
    });

  async function applied(...documents: string[]) {
    const service = await stage();
    const cwd = temporaryDirectory();
    const apply = async (stdin: string) => {
      const { exit, out } = await rdctl(['apply', '-f', '-', '-o', 'json'], { env: service.env, cwd, stdin });
      return { exit, outcome: JSON.parse(out).outcome };
    };
    for (const document of documents) expect(await apply(document)).toEqual({ exit: 0, outcome: 'applied' });
    const installed = async () =>
      leafAt((await service.client.settings()).settings, 'application.extensions.installed');
    return { ...service, cwd, apply, installed };
  }

  test('are restored with apply --previous, and again', async () => {
    const { env, cwd, installed } = await applied(
      profile({ 'simulated/hello': '1.0.0' }),
      profile({ 'simulated/hello': '1.1.0', 'simulated/panel': 'v1' }),
    );
    for (const back of [{ 'simulated/hello': '1.0.0' }, { 'simulated/hello': '1.1.0', 'simulated/panel': 'v1' }]) {
      expect((await rdctl(['apply', '--previous'], { env, cwd })).exit).toBe(0);
      expect(await installed()).toEqual(back);
    }
  });

  test('need no apply when only their files were damaged', async () => {
    const one = profile({ 'simulated/hello': '1.0.0' });
    const { apply, here, run } = await applied(one);
    writeFileSync(join(here.extensions, idOf('simulated/hello'), 'metadata.json'), '{x');
    expect((await run(['ls'])).out).toBe('No extensions are installed.\n');
    expect(await apply(one)).toEqual({ exit: 0, outcome: 'unchanged' });
    expect((await run(['ls'])).out).toBe('No extensions are installed.\n');
  });
});
