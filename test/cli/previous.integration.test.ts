import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const ENGINE = (name: string) => JSON.stringify({ version: 19, containerEngine: { name } });

/** Two services, and one tool home that reaches either one by its connection file. */
async function twoTargets() {
  const home = temporaryDirectory();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'containerd.json'), ENGINE('containerd'));
  const env = { RDCTL_HOME: home };
  const target = async (name: string, settings: object) => {
    const running = await startService({ settings: { kubernetes: { enabled: false }, ...settings } });
    await running.converged();
    const file = join(cwd, `${name}.connection.json`);
    const { user, password, port } = running.service.connection;
    writeConnection(file, { user, password, port });
    const run = (...[command = '', ...argv]: string[]) =>
      rdctl([command, '--config-path', file, ...argv], { env, cwd });
    return { ...running, run };
  };
  const one = await target('one', { images: { namespace: 'one' } });
  const other = await target('other', { images: { namespace: 'other' } });
  return { home, one, other };
}

test('each service is rolled back by its own history, whichever home the tool is in', async () => {
  const { home, one, other } = await twoTargets();
  expect((await one.run('apply', '-f', 'containerd.json')).exit).toBe(0);
  const before = (await other.client.status()).generation;
  for (const command of [['apply', '--previous'], ['rollback']] as const) {
    const nothing = await other.run(...command);
    expect(nothing.exit).toBe(1);
    expect(nothing.err).toContain('There is nothing to undo');
  }
  expect((await other.client.status()).generation).toBe(before);
  expect((await other.run('apply', '-f', 'containerd.json')).exit).toBe(0);
  for (const [target, namespace, command] of [
    [one, 'one', ['apply', '--previous']],
    [other, 'other', ['rollback']],
  ] as const) {
    expect((await target.run(...command)).exit).toBe(0);
    expect((await target.client.settings()).settings).toMatchObject({
      containerEngine: { name: 'moby' },
      images: { namespace },
    });
    expect((await target.client.history()).at(-1)?.by.how).toBe('rollback');
  }
  // Settings may contain secrets, and the history does not.
  const state = join(home, 'state');
  const names = existsSync(state) ? readdirSync(state) : [];
  expect(names.filter((name) => name.startsWith('before-apply'))).toEqual([]);
});
