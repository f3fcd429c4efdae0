import { readdirSync, writeFileSync } from 'node:fs';
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
    return {
      ...running,
      apply: (...argv: string[]) => rdctl(['apply', '--config-path', file, ...argv], { env, cwd }),
    };
  };
  const one = await target('one', { images: { namespace: 'one' } });
  const other = await target('other', { images: { namespace: 'other' } });
  return { home, one, other };
}

test('the state kept for one service is not applied to another', async () => {
  const { one, other } = await twoTargets();
  expect((await one.apply('-f', 'containerd.json')).exit).toBe(0);
  const before = (await other.client.status()).generation;
  const refused = await other.apply('--previous');
  expect(refused.exit).toBe(3);
  expect(refused.err).toMatch(
    /^Error: The previous state is from another target, but this is rdctl at .*; nothing was changed\./,
  );
  expect((await other.client.status()).generation).toBe(before);
});

test('two targets keep separate previous states', async () => {
  const { home, one, other } = await twoTargets();
  expect((await one.apply('-f', 'containerd.json')).exit).toBe(0);
  expect((await other.apply('-f', 'containerd.json')).exit).toBe(0);
  const kept = readdirSync(join(home, 'state')).filter((name) => name.startsWith('before-apply'));
  expect(kept).toHaveLength(2);
  for (const [target, namespace] of [
    [one, 'one'],
    [other, 'other'],
  ] as const) {
    expect((await target.apply('--previous')).exit).toBe(0);
    expect((await target.client.settings()).settings).toMatchObject({
      containerEngine: { name: 'moby' },
      images: { namespace },
    });
  }
});
