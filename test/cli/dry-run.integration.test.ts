import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { fingerprint } from '../helpers/user-home.ts';

/** The files of a home but for the logs, which a service writes in its own time. */
function left(home: string): Record<string, string> {
  return Object.fromEntries(Object.entries(fingerprint(home)).filter(([name]) => !name.startsWith('logs')));
}

/** The text of `rdctl plan` of these settings, with the exit code. */
async function planOf(settings: object, env: Record<string, string>) {
  const { err: _, ...shown } = await rdctl(['plan', '-f', '-'], {
    env,
    stdin: JSON.stringify({ version: 19, ...settings }),
  });
  return shown;
}

describe('set --dry-run', () => {
  test('shows the plan with its cost, and changes nothing', async () => {
    const { env, client, home, converged } = await startService({ power: 'started' });
    await converged();
    const before = left(home);
    const { generation } = await client.status();
    const dry = await rdctl(['set', '--dry-run', '--container-engine.name=containerd'], { env });
    expect(dry.out).toMatch(/containerEngine\.name: moby → containerd\n {6}restart: /);
    expect(dry).toEqual({ ...(await planOf({ containerEngine: { name: 'containerd' } }, env)), err: '' });
    expect([(await client.status()).generation, left(home)]).toEqual([generation, before]);
    const shown = await rdctl(['set', '--dry-run', '--diagnostics.muted-checks=A=null'], { env });
    expect(shown).toMatchObject({ exit: 0, out: expect.stringContaining('Nothing to change.') });
  });

  test('without a service compares with the stored settings, and creates nothing', async () => {
    const home = temporaryDirectory();
    const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated' };
    const dry = await rdctl(['set', '--images.show-all=false', '--dry-run'], { env });
    expect(dry.out).toContain('images.showAll: true → false\n');
    expect(dry).toEqual({ ...(await planOf({ images: { showAll: false } }, env)), err: '' });
    expect(left(home)).toEqual({});
  });

  test('exits with 3 for a locked setting, and with 1 for a value that is refused', async () => {
    const locked = join(temporaryDirectory(), 'locked.json');
    writeFileSync(locked, '{"version":19,"containerEngine":{"name":"moby"}}');
    const { env } = await startService({ policies: { locked } });
    const of = (...argv: string[]) => rdctl(['set', '--dry-run', ...argv], { env });
    expect(await of('--container-engine.name=containerd')).toMatchObject({
      exit: 3,
      out: expect.stringContaining('locked'),
    });
    for (const each of [env, { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated' }]) {
      expect(await rdctl(['set', '--dry-run', '--kubernetes.port=70000'], { env: each })).toMatchObject({
        exit: 1,
        out: '',
        err: expect.stringContaining('kubernetes.port'),
      });
    }
  });
});

describe('start --dry-run', () => {
  test('shows what the start would change, and starts nothing', async () => {
    const home = temporaryDirectory();
    const env = { RDCTL_HOME: home };
    const argv = ['start', '--driver', 'simulated', '--images.show-all=false', '--dry-run'];
    const { exit, out, err } = await rdctl(argv, { env });
    expect([exit, err, left(home)]).toEqual([0, '', {}]);
    expect(out).toMatch(/images\.showAll: true → false\n[\s\S]*state: stopped → started\n/);
    expect(await rdctl(['start', '--driver', 'none', '--dry-run'], { env })).toMatchObject({ exit: 1, out: '' });
  });

  test('names the files of the user', async () => {
    const home = temporaryDirectory();
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config') };
    const { exit, out } = await rdctl(['start', '--dry-run'], { env });
    expect([exit, left(home)]).toEqual([0, {}]);
    expect(out).toContain('Your files:\n');
    expect(out).toContain('selects docker context rdctl\n');
  });

  test('with a running service leaves a stopped backend stopped', async () => {
    const { env, client, home } = await startService({ power: 'stopped' });
    const before = left(home);
    const { exit, out } = await rdctl(['start', '--dry-run'], { env });
    expect([exit, out]).toEqual([0, expect.stringContaining('state: stopped → started\n')]);
    expect([(await client.status()).power, left(home)]).toEqual(['stopped', before]);
  });
});

describe('reset --dry-run', () => {
  test.each([
    ['--k8s', 'Would delete everything in the cluster.\n'],
    ['--vm', 'Would delete the machine with all images, containers and volumes.\n'],
  ])('%s says what would be lost, and loses nothing', async (flag, loss) => {
    const { env, client, home } = await startService({ power: 'started' });
    // Written once what runs is proven.
    await expect.poll(() => Object.keys(left(home))).toContain('state/proven.json');
    const before = left(home);
    const { generation } = await client.status();
    const dry = await rdctl(['reset', flag, '--dry-run'], { env });
    expect([dry.exit, dry.out]).toEqual([0, expect.stringContaining(loss)]);
    expect(dry.out).toContain('A snapshot of it would be made first');
    const without = await rdctl(['reset', flag, '--dry-run', '--no-snapshot', '--yes'], { env });
    expect(without.out).toContain('No snapshot of it would be made first.\n');
    expect([(await client.status()).generation, left(home)]).toEqual([generation, before]);
  });

  test('asks the service for its state and a plan only', async () => {
    await using server = await scriptedServer(() => ({ body: '{"vmState":"STARTED","locked":false}' }));
    const { exit } = await rdctl(['reset', '--vm', '--k8s', '--cache', '--dry-run'], { env: server.env });
    expect(exit).toBe(0);
    expect(server.received.filter(({ method, path }) => method !== 'GET' && !path.startsWith('/v2/plan?'))).toEqual([]);
  });

  test('--factory names the service that it would stop, and leaves everything', async () => {
    const { env, client, home, converged } = await startService({ power: 'started' });
    await converged();
    const before = left(home);
    const { exit, out, err } = await rdctl(['reset', '--factory', '--dry-run'], { env });
    const { pid } = await client.status();
    expect([exit, err]).toEqual([0, expect.stringContaining(`notice: stops the service (pid ${pid})\n`)]);
    expect(out).toMatch(/^Would be removed:\n/);
    expect(left(home)).toEqual(before);
  });

  test('--factory names the files of the user, and --cache the downloads', async () => {
    const home = temporaryDirectory();
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config') };
    const cache = join(home, '.cache', 'rdctl');
    for (const name of [join(home, '.local/state/rdctl/service.lock'), join(cache, 'downloads')])
      mkdirSync(name, { recursive: true });
    writeFileSync(
      join(home, '.bashrc'),
      '### MANAGED BY RDCTL START (DO NOT EDIT)\n### MANAGED BY RDCTL END (DO NOT EDIT)\n',
    );
    const before = left(home);
    const { exit, out } = await rdctl(['reset', '--factory', '--dry-run'], { env });
    expect([exit, out]).toEqual([0, expect.stringContaining(`Your files:\n  ~ ${join(home, '.bashrc')}: `)]);
    expect(await rdctl(['reset', '--cache', '--dry-run'], { env })).toEqual({
      exit: 0,
      out: `Would be removed:\n  ${cache}\n`,
      err: '',
    });
    expect(left(home)).toEqual(before);
  });
});
