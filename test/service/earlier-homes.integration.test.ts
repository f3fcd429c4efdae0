import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { EARLIER_HOMES, type EarlierHome, unpack } from '../helpers/earlier-home.ts';
import { startService } from '../helpers/service.ts';

const names = ({ files }: EarlierHome) => Object.keys(files);
const has = (home: EarlierHome, name: string) => names(home).some((each) => each.startsWith(`home/${name}`));
const logOf = (home: string) =>
  JSON.parse(readFileSync(join(home, 'state/drivers/simulated/machine.json'), 'utf8')).log as unknown[];

describe.each(EARLIER_HOMES.map((home) => [home.commit, home] as const))('the home of %s', (_commit, earlier) => {
  test('is planned, adopted, applied once, gone back with, and reset', async () => {
    const { root, home } = unpack(earlier);
    const profile = join(root, 'profile.yaml');
    const offline = await rdctl(['plan', '-f', profile], { env: { RDCTL_HOME: home } });
    expect(offline.exit, offline.err).toBe(0);

    const steps = logOf(home).length;
    const { service, env, converged } = await startService({ home });
    const status = await converged();
    expect(status.backendState).toBe('STARTED');
    // What ran goes on: nothing in it was started again.
    if (!has(earlier, 'state/transaction.json')) expect(logOf(home)).toHaveLength(steps);

    const ok = async (...argv: string[]) => {
      const { exit, out, err } = await rdctl(argv, { env });
      expect(exit, `${argv.join(' ')}: ${err}`).toBe(0);
      return out + err;
    };
    await ok('apply', '-f', profile, '--allow-reset');
    expect(await ok('apply', '-f', profile)).toContain('Nothing to change.');
    if (has(earlier, 'state/kept.json')) expect(await ok('kept')).toContain('team');
    if (has(earlier, 'state/tokens/')) expect(await ok('token', 'list')).toContain('ci');
    if (has(earlier, 'state/history.jsonl')) {
      expect(await ok('history')).toContain('kubernetes.version');
      await ok('release', 'team').catch(() => undefined);
      await ok('rollback', '--allow-reset');
    }
    if (has(earlier, 'snapshots/')) {
      expect(await ok('snapshot', 'list')).toContain('before');
      await ok('snapshot', 'restore', 'before');
      await converged();
    }
    await service.stop('the reset follows');
    await ok('reset', '--factory');
    expect(existsSync(join(home, 'config', 'settings.json'))).toBe(false);
    expect(existsSync(join(home, 'state'))).toBe(false);
  });

  test('is reset at once, with what its killed service left on', async () => {
    const { home } = unpack(earlier);
    const { exit, err } = await rdctl(['reset', '--factory'], { env: { RDCTL_HOME: home } });
    expect(exit, err).toBe(0);
    expect(existsSync(join(home, 'state'))).toBe(false);
  });
});

describe('files of a newer release', () => {
  const latest = EARLIER_HOMES.find(({ commit }) => commit === '7f487a96') as EarlierHome;
  const killed = EARLIER_HOMES.find((home) => has(home, 'state/transaction.json')) as EarlierHome;
  const stored = [...names(latest), ...names(killed)].filter((name) =>
    /^home\/state\/(?:[^/]+\.jsonl?|drivers\/.*)$/.test(name),
  );

  test.each([...new Set(stored)])('%s is refused, and left as it is', async (name) => {
    const { root, home } = unpack(has(latest, name.slice('home/'.length)) ? latest : killed);
    const path = join(root, name);
    const text = name.endsWith('.jsonl') ? `{"format":2}\n${readFileSync(path, 'utf8')}` : newer(path);
    writeFileSync(path, text);
    await expect(startService({ home })).rejects.toMatchObject({
      code: 'ERR_OTHER_VERSION',
      message: `${path} has format 2, but this rdctl reads format 1 only: a newer release wrote it`,
      advice: expect.stringContaining('rdctl reset --factory'),
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

describe('a home with a file that cannot be used', () => {
  const [latest] = EARLIER_HOMES.filter(({ commit }) => commit === '7f487a96') as [EarlierHome];
  const ours = names(latest).filter((name) => name.startsWith('home/') && !name.startsWith('home/snapshots/'));

  test.each([
    ['every file empty', /./, ''],
    ['every file of a newer release', /./, '{"format":2}'],
    ['the state cut off', /state\.json$/, '{"'],
    ['the machine cut off', /machine\.json$/, '{"'],
    ['the lock cut off', /service\.lock/, '{"'],
  ])('is reset: %s', async (_what, damaged, text) => {
    const { root, home } = unpack(latest);
    for (const name of ours.filter((each) => damaged.test(each))) writeFileSync(join(root, name), text);
    const { exit, err } = await rdctl(['reset', '--factory'], { env: { RDCTL_HOME: home } });
    expect(exit, err).toBe(0);
    expect(existsSync(join(home, 'state'))).toBe(false);
    // Snapshots stay.
    expect(statSync(join(home, 'snapshots')).isDirectory()).toBe(true);
  });
});

function newer(path: string): string {
  return JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), format: 2 });
}
