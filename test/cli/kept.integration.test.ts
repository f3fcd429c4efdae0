import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/os/clock.ts';
import { rdctl } from '../helpers/cli.ts';
import { schemaCheck } from '../helpers/schema-check.ts';
import { startService, type TestServiceOptions } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const validKept = schemaCheck('kept');
const OFF = { kubernetes: { enabled: false } };
const TEAM = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: team }
settings:
  version: 19
  containerEngine: { name: moby }
  images: { namespace: web }
watch:
  heal: warn
  fields: { images: enforce }
`;

/** A service without a cluster, and the tool beside it. */
async function scene(options: TestServiceOptions = {}) {
  const running = await startService({ settings: OFF, ...options });
  await running.converged();
  const cwd = temporaryDirectory();
  const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);
  write('team.yaml', TEAM);
  const run = (...argv: string[]) => rdctl(argv, { env: running.env, cwd });
  const kept = async () => (await running.client.status()).kept ?? [];
  /** The status once it is as expected; the test fails by its time limit. */
  async function until(isMet: (list: Awaited<ReturnType<typeof kept>>) => boolean) {
    for (;;) {
      const list = await kept();
      expect(validKept({ kind: 'Kept', formatVersion: 1, kept: list }), JSON.stringify(validKept.errors)).toBe(true);
      if (isMet(list)) return list;
      await systemClock.sleep(5);
    }
  }
  return { ...running, cwd, write, run, kept, until };
}

test('a profile is kept, its drift is shown and healed, and it is released', async () => {
  const { run, until, cwd, here, client } = await scene();
  const first = await run('apply', '-f', 'team.yaml', '--keep');
  expect(first.out).toContain('Kept as team.');
  expect(statSync(here.keptFile).mode & 0o777).toBe(0o600);
  await client.putSettings({ version: 19, images: { namespace: 'x' }, containerEngine: { name: 'containerd' } });
  await until(([team]) => team?.drift.length === 1);
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'web' } });
  const shown = await run('kept');
  expect(shown.out).toContain('~ containerEngine.name is containerd, should be moby');
  expect(shown.out).toContain(`${join(cwd, 'team.yaml')}:6:22`);
  expect(shown.out).toMatch(/reported \(warn\), .* set by `set` \(rdctl\/.*\) in generation \d+/);
  expect((await run('status')).out).toContain('notice: "containerEngine.name" differs from the kept profile team');
  const { out } = await run('history');
  expect(out).toMatch(/ heal team .*images\.namespace: x → web/);
  // Applied without --keep, it stays kept.
  expect((await run('apply', '-f', 'team.yaml')).out).toContain('Kept as team.');
  await until(([team]) => team?.state === 'in sync');
  expect((await run('release')).out).toBe('Released team. The settings stay as they are.\n');
  expect((await run('kept')).out).toMatch(/^No profile is kept/);
  expect(await run('release')).toMatchObject({ exit: 1, err: expect.stringContaining('no profile is kept') });
});

test('kept profiles survive the service; drift of the time without one is healed', async () => {
  const { run, service, home } = await scene();
  await run('apply', '-f', 'team.yaml', '--keep');
  await service.stop('the test says so');
  expect((await run('kept')).out).toMatch(/^team: not watched, from .*team\.yaml\n\nNo service is running/);
  const file = join(home, 'config', 'settings.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"namespace": "web"', '"namespace": "x"'));
  const next = await scene({ home });
  await next.until(([team]) => team?.state === 'in sync');
  expect((await next.client.settings()).settings).toMatchObject({ images: { namespace: 'web' } });
});

test('two writers at ten times a second are stopped and named within five seconds', async () => {
  const { run, client, until } = await scene();
  await run('apply', '-f', 'team.yaml', '--keep');
  const begun = performance.now();
  let over = false;
  const writer = (async () => {
    while (!over) {
      await client.putSettings({ version: 19, images: { namespace: 'fight' } });
      await systemClock.sleep(100);
    }
  })();
  const [team] = await until(([each]) => each?.state === 'contested');
  const ms = performance.now() - begun;
  over = true;
  await writer;
  expect(ms).toBeLessThan(5000);
  expect(team?.contested[0]?.message).toMatch(/the kept profile team and `set` \(rdctl\//);
  const { conditions, notices } = await client.status();
  expect(conditions.at(-1)).toMatchObject({ type: 'Contested', concern: 'attention' });
  expect(notices.join()).toContain('is contested');
  const { out } = await run('history', '-o', 'json');
  const heals = JSON.parse(out).entries.filter(({ by }: { by: { how: string } }) => by.how === 'heal');
  expect(heals).toHaveLength(3);
});

test('a window defers what restarts: shown in the plan, stored, and made at once with --now', async () => {
  const { run, write, client, kept } = await scene();
  // Tomorrow, so that it is closed now.
  const day = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][(new Date().getDay() + 2) % 7];
  const text = TEAM.replace('name: moby', 'name: containerd');
  write('window.yaml', `${text}apply: { window: "${day} 02:00-04:00", maxDefer: 14d }\n`);
  expect((await run('plan', '-f', 'window.yaml')).out).toMatch(
    new RegExp(`Restart deferred until ${day} 02:00 \\(in \\d+ (hours|days)\\):\n {2}\\* containerEngine\\.name`),
  );
  const refused = await run('apply', '-f', 'window.yaml');
  expect(refused).toMatchObject({ exit: 1, err: expect.stringContaining('the profile has a maintenance window') });
  expect(await run('plan', '-f', 'window.yaml', '--out-file', 'p.json')).toMatchObject({ exit: 1 });
  const applied = await run('apply', '-f', 'window.yaml', '--keep');
  expect(applied).toMatchObject({ exit: 0, out: expect.stringContaining('1 change deferred.\nKept as team.') });
  expect((await client.settings()).settings).toMatchObject({
    images: { namespace: 'web' },
    containerEngine: { name: 'moby' },
  });
  expect(await kept()).toMatchObject([{ state: 'deferred', drift: [{ path: 'containerEngine.name', pending: true }] }]);
  expect((await run('kept')).out).toContain(`deferred until ${day} 02:00`);
  expect((await run('apply', '-f', 'window.yaml', '--now')).exit).toBe(0);
  expect(await kept()).toMatchObject([{ state: 'in sync' }]);
});

const EXTENSIONS = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: tools }
settings: { version: 19, application: { extensions: { installed: { simulated/hello: 1.0.0 } } } }
prune: [application.extensions.installed]
state: started
watch: { heal: enforce }
`;

test('extensions are healed: one that was removed, replaced or added', async () => {
  const { run, write, until, client } = await scene();
  write('tools.yaml', EXTENSIONS);
  expect(await run('apply', '-f', 'tools.yaml', '--keep')).toMatchObject({ exit: 0 });
  const installed = async () => {
    const { settings } = await client.settings();
    return (settings as { application: { extensions: { installed: object } } }).application.extensions.installed;
  };
  for (const change of [
    ['uninstall', 'simulated/hello'],
    ['install', 'simulated/hello:1.1.0'],
    ['install', 'simulated/panel:v1'],
  ]) {
    expect(await run('extension', ...change)).toMatchObject({ exit: 0 });
    await expect.poll(installed, { message: change.join(' ') }).toEqual({ 'simulated/hello': '1.0.0' });
    await until(([tools]) => tools?.state === 'in sync');
  }
  write(
    'panel.yaml',
    EXTENSIONS.replace('tools', 'panel')
      .replace('hello: 1.0.0', 'panel: v1')
      .replace(/^prune.*$/m, ''),
  );
  const plan = await run('plan', '-f', 'panel.yaml');
  expect(plan).toMatchObject({ exit: 3, out: expect.stringContaining('The kept profile tools removes it again') });
  const list = JSON.parse((await client.request({ method: 'GET', path: '/v1/extensions' })).body.toString());
  expect(Object.keys(list)).toEqual(['simulated/hello']);
  const { entries } = JSON.parse((await run('history', '-o', 'json')).out);
  expect(entries.filter(({ by }: { by: { how: string } }) => by.how === 'heal').length).toBeGreaterThanOrEqual(3);
});

const OTHER = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: other }
settings:
  version: 19
  containerEngine: { name: containerd }
  images: { namespace: other }
`;
const SET_BACK = 'The kept profile team sets it back to "web"';

test('a plan says what a kept profile sets back, with and without a service, and an apply of it is refused', async () => {
  const { run, write, cwd, client, service, home } = await scene();
  await run('apply', '-f', 'team.yaml', '--keep');
  write('other.yaml', OTHER);
  const before = await client.status();
  const plan = await run('plan', '-f', 'other.yaml');
  expect(plan.exit).toBe(3);
  expect(plan.out).toContain(`images.namespace: web → other (other.yaml:7:13)`);
  expect(plan.out).toContain(`kept: ${SET_BACK} (${join(cwd, 'team.yaml')}:7:13).`);
  expect(plan.out).toContain('Kept profiles:\n  * containerEngine.name will differ from team (warn)\n');
  const document = JSON.parse((await run('plan', '-f', 'other.yaml', '-o', 'json')).out);
  expect(document.drift).toEqual([
    {
      profile: 'team',
      path: 'containerEngine.name',
      after: 'moby',
      heal: 'warn',
      state: 'reported',
      place: expect.any(String),
    },
    {
      profile: 'team',
      path: 'images.namespace',
      after: 'web',
      heal: 'enforce',
      state: 'healing',
      place: expect.any(String),
    },
  ]);
  const refused = await run('apply', '-f', 'other.yaml', '--skip-locked', '--skip-unsupported');
  expect(refused).toMatchObject({ exit: 3, err: expect.stringContaining(SET_BACK) });
  expect(refused.err).toContain('end its keeping with `rdctl release team`');
  expect((await client.status()).generation).toBe(before.generation);
  await service.stop('the test says so');
  expect(await run('plan', '-f', 'other.yaml')).toMatchObject({ exit: 3, out: expect.stringContaining(SET_BACK) });
  const next = await scene({ home });
  await next.run('release', 'team');
  next.write('other.yaml', OTHER);
  expect(await next.run('apply', '-f', 'other.yaml')).toMatchObject({ exit: 0 });
  expect((await next.run('apply', '-f', 'other.yaml')).out).toContain('Nothing to change.');
});

test('the kept profile itself changes what it enforces; set warns, and a rollback says that it pauses the healing', async () => {
  const { run, write, client, until } = await scene();
  await run('apply', '-f', 'team.yaml', '--keep');
  write('team.yaml', TEAM.replace('namespace: web', 'namespace: two'));
  expect(await run('plan', '-f', 'team.yaml')).toMatchObject({ exit: 0 });
  // A saved plan updates no kept profile.
  expect(await run('plan', '-f', 'team.yaml', '--out-file', 'p.json')).toMatchObject({ exit: 3 });
  expect(await run('apply', '-f', 'team.yaml')).toMatchObject({ exit: 0 });
  expect((await run('apply', '-f', 'team.yaml')).out).toContain('Nothing to change.');
  const set = await run('set', '--images.namespace=x', '--container-engine.name=containerd');
  expect(set).toMatchObject({ exit: 0 });
  expect(set.err).toContain('warning: images.namespace is set back to two at once by the kept profile team\n');
  expect(set.err).toContain('warning: containerEngine.name will differ from the kept profile team (warn)\n');
  await until(([team]) => team?.drift.length === 1);
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'two' } });
  const first = JSON.parse((await run('history', '-o', 'json')).out).entries[0];
  const paused = 'images.namespace will differ from team (enforce). Healing is paused since a rollback';
  const to = String(first.generation - 1);
  expect(await run('rollback', to, '--plan')).toMatchObject({ exit: 0, out: expect.stringContaining(paused) });
  expect(await run('rollback', to)).toMatchObject({ exit: 0, err: expect.stringContaining(paused) });
  const [team] = await until(([each]) => each?.drift.some(({ state }) => state === 'paused') === true);
  expect(team?.state).toBe('paused');
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'default' } });
});

test.each([
  [
    'a profile without a name',
    'apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19 }\n',
    1,
    'needs a profile with a name',
  ],
  [
    'a rule for what it does not mention',
    TEAM.replace('images: enforce', 'kubernetes: enforce'),
    3,
    'p.yaml:10:13: watch.fields names kubernetes, which the profile does not mention',
  ],
])('%s is not kept', async (_, text, exit, message) => {
  const { run, write, kept } = await scene();
  write('p.yaml', text);
  expect(await run('apply', '-f', 'p.yaml', '--keep')).toMatchObject({ exit, err: expect.stringContaining(message) });
  expect(await kept()).toEqual([]);
});

test('a profile of which something was skipped is not in sync, and says what, also after another apply', async () => {
  const locked = join(temporaryDirectory(), 'locked.json');
  writeFileSync(locked, JSON.stringify({ version: 19, images: { namespace: 'theirs' } }));
  const { run, write, until } = await scene({ policies: { locked } });
  write('skip.yaml', TEAM);
  for (const _ of ['once', 'twice']) {
    expect(await run('apply', '-f', 'skip.yaml', '--keep', '--skip-locked')).toMatchObject({ exit: 0 });
    expect(await until(([team]) => team?.drift.length === 1)).toMatchObject([
      {
        state: 'drifted',
        drift: [{ path: 'images.namespace', state: 'blocked', message: expect.stringContaining('locked') }],
      },
    ]);
  }
  expect((await run('kept')).out).toContain('team: drifted');
});
