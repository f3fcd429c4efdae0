import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { HistoryEntry, RecordedChange } from '../../src/plan/history.ts';
import { rdctl } from '../helpers/cli.ts';
import { schemaCheck } from '../helpers/schema-check.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const validHistory = schemaCheck('history');

const TEAM = `apiVersion: rdctl/v1
kind: Profile
metadata: { name: team }
settings: { version: 19, containerEngine: { name: containerd }, kubernetes: { enabled: false } }
machine: { hostPorts: [80] }
`;

/** A service without a cluster, and the tool beside it. */
async function scene(home = temporaryDirectory()) {
  const running = await startService({ home, settings: { kubernetes: { enabled: false } } });
  await running.converged();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'team.yaml'), TEAM);
  const run = (...argv: string[]) => rdctl(argv, { env: running.env, cwd });
  const entries = async (...argv: string[]) => {
    const document = JSON.parse((await run('history', '-o', 'json', ...argv)).out);
    expect(validHistory(document), JSON.stringify(validHistory.errors)).toBe(true);
    return document.entries;
  };
  return { ...running, cwd, run, entries };
}

function means(entries: HistoryEntry[]): string[] {
  return entries.map(({ by }) => by.how);
}

test('each change is listed with its author, its files and its result', async () => {
  const { run, entries, converged, cwd } = await scene();
  expect((await run('history')).err).toBe('Nothing has been changed in this home yet.\n');
  await run('apply', '-f', 'team.yaml');
  await run('set', '--images.namespace', 'web');
  await converged();
  // An outcome is recorded a moment after the status has it.
  await expect.poll(entries).toMatchObject([
    {
      by: { how: 'apply', profile: 'team' },
      changes: [
        { path: 'containerEngine.name', before: 'moby', after: 'containerd' },
        { path: 'machine.hostPorts', before: [], after: [80] },
      ],
      outcome: { result: 'converged' },
    },
    {
      by: { how: 'set' },
      changes: [{ path: 'images.namespace', before: 'default', after: 'web' }],
      outcome: { result: 'converged' },
    },
  ]);
  const all = await entries();
  expect(all[0].by.files).toEqual([{ path: join(cwd, 'team.yaml'), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
  expect(all[0].by.program).toMatch(/^rdctl\//);
  const file = join(cwd, 'team.yaml');
  expect(all[0].changes.map(({ source }: RecordedChange) => source)).toEqual([
    { file, line: 4 },
    { file, line: 5 },
  ]);
  expect(all[1].changes[0].source).toBeUndefined();
  const { out } = await run('history');
  expect(out.split('\n')[1]).toMatch(/ set +converged +images\.namespace: default → web$/);
  expect(out.split('\n')[2]).toMatch(
    / apply team +converged +containerEngine\.name: moby → containerd, machine\.hostPorts/,
  );
});

test('one entry in full, a difference, and filters', async () => {
  const { run, entries } = await scene();
  await run('apply', '-f', 'team.yaml');
  await run('set', '--images.namespace', 'web');
  await expect.poll(entries).toMatchObject([{ outcome: {} }, { outcome: {} }]);
  const [first, second] = await entries();
  const shown = await run('history', 'show', String(first.generation));
  expect(shown.out).toMatch(/^By +apply team$/m);
  expect(shown.out).toMatch(/^ {2}containerEngine\.name: moby → containerd {2}\(team\.yaml:4\)$/m);
  expect(shown.out).toMatch(/^ {2}engine start /m);
  const diff = await run('history', 'diff', String(first.generation), String(second.generation));
  expect(diff).toMatchObject({ exit: 2, out: 'Changes\n  images.namespace: default → web\n' });
  expect(await entries('--path', 'images')).toEqual([second]);
  expect(await entries('--since', '1h')).toHaveLength(2);
  const explained = await run('explain', 'containerEngine.name');
  expect(explained.out).toMatch(
    new RegExp(`^Set by +team\\.yaml:4, apply team, .*, generation ${first.generation}$`, 'm'),
  );
  expect((await run('history', 'show', '999')).exit).toBe(1);
  expect((await run('history', 'diff', String(second.generation), String(first.generation))).exit).toBe(1);
});

test('a rollback undoes the last change, can be undone, and is no change the second time', async () => {
  const { run, entries, client } = await scene();
  await run('apply', '-f', 'team.yaml');
  const plan = await run('rollback', '--plan');
  expect(plan.out).toContain('containerEngine.name: containerd → moby');
  expect((await entries()).length).toBe(1);
  expect((await run('rollback')).exit).toBe(0);
  expect((await client.settings()).settings).toMatchObject({ containerEngine: { name: 'moby' } });
  const [applied] = await entries();
  await expect
    .poll(async () => (await entries())[1])
    .toMatchObject({ by: { how: 'rollback', to: applied.generation - 1 }, outcome: { result: 'converged' } });
  expect((await run('rollback', String(applied.generation - 1))).out).toContain('Nothing to change.');
  expect((await run('rollback')).exit).toBe(0);
  expect((await client.settings()).settings).toMatchObject({ containerEngine: { name: 'containerd' } });
  expect((await run('diff', '-f', 'team.yaml')).exit).toBe(0);
});

test('a plan says what the same steps took here, and nothing without an earlier change', async () => {
  const { run, service, home } = await scene();
  const predicted = async (cli = run) =>
    JSON.parse((await cli('plan', '-f', 'team.yaml', '-o', 'json')).out).prediction;
  expect(await predicted()).toBeUndefined();
  await run('apply', '-f', 'team.yaml');
  expect(await predicted()).toBeUndefined();
  await run('rollback');
  expect(await predicted()).toMatchObject({ times: 2, ms: expect.any(Number) });
  await service.stop('test');
  expect(await predicted()).toBeUndefined();
  const again = await scene(home);
  expect(await predicted(again.run)).toMatchObject({ times: 2 });
  expect((await again.run('rollback', '--plan')).out).toMatch(/About .* as the same steps took here twice since /);
});

test('without a service, the history can be read and a rollback starts one', async () => {
  const { run, entries, service, home } = await scene();
  await run('apply', '-f', 'team.yaml');
  await service.stop('test');
  expect(means(await entries())).toEqual(['apply', 'power']);
  expect((await run('rollback', '--plan')).out).toContain('containerEngine.name: containerd → moby');
  const again = await scene(home);
  expect((await again.run('rollback')).exit).toBe(0);
  expect((await again.run('diff', '-f', 'team.yaml')).exit).toBe(2);
});

test('a history that a crash cut off, or that someone damaged, loses only that line', async () => {
  const { run, entries, service, home, here } = await scene();
  await run('apply', '-f', 'team.yaml');
  await service.stop('test');
  appendFileSync(here.historyFile, '{"entry":{"generation":9,"at":"2026');
  const again = await scene(home);
  await again.run('set', '--images.namespace', 'web');
  expect(means(await entries())).toEqual(['apply', 'power', 'start', 'set']);
  expect(readFileSync(here.historyFile, 'utf8').endsWith('\n')).toBe(true);
});

test('a plan says what it takes over from another profile', async () => {
  const { run, cwd } = await scene();
  await run('apply', '-f', 'team.yaml');
  writeFileSync(join(cwd, 'mine.yaml'), TEAM.replace('containerd', 'moby'));
  const { out } = await run('plan', '-f', 'mine.yaml');
  expect(out).toMatch(
    /"containerEngine\.name" was set by .*team\.yaml just now \(generation \d+\); this profile takes it over\./,
  );
  writeFileSync(join(cwd, 'team.yaml'), TEAM.replace('containerd', 'moby'));
  expect((await run('plan', '-f', 'team.yaml')).out).not.toContain('takes it over');
});

test('how a service is launched is no change', async () => {
  const { run, entries, service, home } = await scene();
  await run('apply', '-f', 'team.yaml');
  await service.stop('test');
  // As an apply launches it that does not manage the power state.
  await startService({ home, power: 'stopped', idle: true });
  expect(means(await entries())).toEqual(['apply', 'power']);
});

test('there is nothing to undo in a new home', async () => {
  const { run } = await scene();
  const { exit, err } = await run('rollback');
  expect(exit).toBe(1);
  expect(err).toContain('There is nothing to undo');
});

test('a history that outlived a reset continues, and no rollback crosses it', async () => {
  const { run, entries, service, here, home } = await scene();
  await run('apply', '-f', 'team.yaml');
  await service.stop('test');
  const [before] = await entries();
  rmSync(here.stateFile);
  rmSync(here.settingsFile);
  rmSync(here.previousSettingsFile, { force: true });
  const again = await scene(home);
  expect((await again.run('rollback')).exit).toBe(1);
  await again.run('set', '--images.namespace', 'web');
  const [first, , reset] = await entries();
  expect(first).toEqual(before);
  expect(means(await entries())).toEqual(['apply', 'power', 'factory reset', 'set']);
  expect(reset.generation).toBeGreaterThan(first.generation);
});
