import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { processTable } from '../../src/os/process-table.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const tool = builtTool();

/** Gone for good: a dying process has no sockets any more and still counts as alive. */
async function killed(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => processTable.isAlive({ pid })).toBe(false);
}

/** Each is a file of the home; the service is killed at the moment it appears. */
const INSTANTS = [
  'backend.lock',
  'state/restore.json',
  'state/settings.staged.json',
  'state/drivers/simulated/machine.json.restoring',
  'state/drivers/simulated/machine.json.before-restore',
];

test('a service that is killed with -9 during a restore leaves the old state or the new, never a mixture', {
  timeout: 120_000,
}, async () => {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '5' };
  const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
  onTestFinished(async () => void (await call('shutdown')));
  const file = join(home, 'state', 'drivers', 'simulated', 'machine.json');
  const model = (): Model => JSON.parse(readFileSync(file, 'utf8'));
  const memory = () =>
    JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8')).virtualMachine.memoryInGB;
  const change = async (images: string[], gib: number) => {
    expect(await call('start', '--wait', '--virtual-machine.memory-in-gb', String(gib))).toMatchObject({ exit: 0 });
    const now = model();
    now.engines.moby.images = images;
    writeFileSync(file, JSON.stringify(now));
  };

  await change(['then'], 4);
  expect(await call('snapshot', 'create', 'one')).toMatchObject({ exit: 0 });
  for (const instant of INSTANTS) {
    expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
    await change(['now'], 8);
    const { pid } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
    const restoring = call('snapshot', 'restore', 'one');
    let ended = false;
    void restoring.finally(() => {
      ended = true;
    });
    while (!ended && !existsSync(join(home, instant))) await new Promise((resolve) => setImmediate(resolve));
    await killed(pid);
    const { exit, err } = await restoring;
    if (exit !== 0) {
      expect(err, instant).toBe(
        `notice: stops the workloads of the cluster
notice: This happens once the snapshot is verified; the backend then starts with its data.
Error: failed to restore snapshot "one": the service exited before it finished
The next start of the service completes the restore, or rolls it back: \`rdctl start\`.
`,
      );
    }
    expect(await call('start', '--wait'), instant).toMatchObject({ exit: 0 });
    expect([
      [['now'], 8],
      [['then'], 4],
    ]).toContainEqual([model().engines.moby.images, memory()]);
    // A running backend is confirmed shortly after it is observed.
    await expect.poll(() => existsSync(join(home, 'state', 'restore.json'))).toBe(false);
    expect(readdirSync(join(home, 'state', 'drivers', 'simulated')), instant).toEqual(['machine.json']);
    expect(existsSync(join(home, 'backend.lock')), instant).toBe(false);
  }

  // During creation: nothing of it stays.
  const { pid } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const creating = call('snapshot', 'create', 'two');
  const unfinished = () => readdirSync(join(home, 'snapshots')).some((name) => name.endsWith('.partial'));
  let ended = false;
  void creating.finally(() => {
    ended = true;
  });
  while (!ended && !unfinished()) await new Promise((resolve) => setImmediate(resolve));
  await killed(pid);
  await creating;
  expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
  expect(unfinished()).toBe(false);
  expect((await call('snapshot', 'list')).out).toMatch(/^NAME.*\none .*\n(?:two .*\n)?$/);
});

interface Entry {
  generation: number;
  loss?: { snapshot: string };
  outcome?: { result: string };
}

/** What is there of a safety snapshot when its service is killed. */
const COVER_INSTANTS = ['the record', 'the copy', 'the snapshot', 'the entry', 'the answer'] as const;
const MOST_ROUNDS = 60;

test('a change that destroys data comes with its snapshot or not at all when its service is killed with -9', {
  timeout: 300_000,
}, async () => {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '5' };
  const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env, cwd: home });
  onTestFinished(async () => void (await call('shutdown')));
  const versions = ['1.33.4', '1.32.8'];
  for (const version of versions) {
    const settings = { version: 19, kubernetes: { enabled: true, version } };
    writeFileSync(join(home, `${version}.json`), JSON.stringify(settings));
  }
  const record = join(home, 'state', 'covering.json');
  const snapshots = () => (existsSync(join(home, 'snapshots')) ? readdirSync(join(home, 'snapshots')) : []);
  const history = () => readFileSync(join(home, 'state', 'history.jsonl'), 'utf8');
  const lastGeneration = () =>
    Math.max(...[...history().matchAll(/"generation":(\d+)/g)].map(([, number]) => Number(number)));
  const version = () =>
    JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8')).kubernetes.version as string;
  const seen = new Set<string>();

  const instants = Array.from({ length: rounds(1, 20) }, () => COVER_INSTANTS).flat();
  // Where the computer is busy, a kill at the first instant may come late: that one is tried until it does not.
  for (
    let round = 0;
    round < instants.length || (!seen.has('not made') && round < instants.length + MOST_ROUNDS);
    round += 1
  ) {
    const instant = instants[round] ?? COVER_INSTANTS[0];
    expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
    expect(await call('apply', '-f', '1.33.4.json')).toMatchObject({ exit: 0 });
    const { pid } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
    const before = { snapshots: snapshots(), entries: history().length, generation: lastGeneration() };
    const added = () => snapshots().filter((name) => !before.snapshots.includes(name));
    const isThere = {
      'the record': () => existsSync(record),
      'the copy': () => added().some((name) => name.endsWith('.partial')),
      'the snapshot': () => added().some((name) => !name.startsWith('.')),
      'the entry': () => history().length > before.entries,
      'the answer': () => history().length > before.entries && !existsSync(record),
    }[instant];
    const applying = call('apply', '-f', '1.32.8.json', '--allow', 'kubernetes-reset');
    let ended = false;
    void applying.finally(() => {
      ended = true;
    });
    while (!ended && !isThere()) await new Promise((resolve) => setImmediate(resolve));
    await killed(pid);
    await applying;
    const { exit, err } = await call('start', '--wait');
    expect([exit, err], instant).toEqual([0, expect.any(String)]);
    expect(existsSync(record), instant).toBe(false);
    expect(snapshots().filter((name) => name.startsWith('.'))).toEqual([]);
    const { entries } = JSON.parse((await call('history', '-o', 'json')).out);
    const [entry] = entries.filter(({ generation, loss }: Entry) => loss && generation > before.generation);
    const isMade = version() === '1.32.8';
    seen.add(isMade ? 'made' : 'not made');
    const made = added().map(
      (id) => JSON.parse(readFileSync(join(home, 'snapshots', id, 'metadata.json'), 'utf8')).name,
    );
    expect(made, instant).toEqual(isMade ? [entry.loss.snapshot] : []);
    if (isMade) expect(await call('snapshot', 'delete', made[0])).toMatchObject({ exit: 0 });
    else expect([undefined, 'not applied'], instant).toContain(entry?.outcome?.result);
  }
  expect([...seen].sort()).toEqual(['made', 'not made']);
});

test('a lower version that `set` has set comes with one snapshot, whenever the service is killed with -9', {
  timeout: 120_000,
}, async () => {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '5' };
  const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env, cwd: home });
  onTestFinished(async () => void (await call('shutdown')));
  const json = (path: string) => JSON.parse(readFileSync(join(home, path), 'utf8'));
  const entries = async (): Promise<Entry[]> => JSON.parse((await call('history', '-o', 'json')).out).entries;
  const snapshots = () => (existsSync(join(home, 'snapshots')) ? readdirSync(join(home, 'snapshots')) : []);
  const losses = () => readFileSync(join(home, 'state', 'history.jsonl'), 'utf8').split('"loss":{').length - 1;
  const higher = { version: 19, kubernetes: { enabled: true, version: '1.33.4' } };
  writeFileSync(join(home, 'higher.json'), JSON.stringify(higher));

  // Each of them also when a later one is there already: the service may be faster than a look.
  const progress = ['the record', 'the copy', 'the snapshot', 'the loss'] as const;
  for (const instant of progress) {
    expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
    expect(await call('apply', '-f', 'higher.json')).toMatchObject({ exit: 0 });
    const [known, lost] = [snapshots(), losses()];
    const generation = Math.max(...(await entries()).map((entry) => entry.generation));
    const added = () => snapshots().filter((name) => !known.includes(name));
    const isThere = {
      'the record': () => existsSync(join(home, 'state', 'covering.json')),
      'the copy': () => added().some((name) => name.endsWith('.partial')),
      'the snapshot': () => added().some((name) => !name.startsWith('.')),
      'the loss': () => losses() > lost,
    };
    const { pid } = json('app-engine.json');
    const setting = call('set', '--kubernetes.version', '1.32.8');
    const reached = progress.slice(progress.indexOf(instant));
    while (!reached.some((name) => isThere[name]())) await new Promise((resolve) => setImmediate(resolve));
    await killed(pid);
    await setting;
    expect(await call('start', '--wait'), instant).toMatchObject({ exit: 0 });
    const lossy = (await entries()).filter((entry) => entry.loss && entry.generation > generation);
    expect(lossy, instant).toHaveLength(1);
    expect(added().map((id) => json(`snapshots/${id}/metadata.json`).name)).toEqual([lossy[0]?.loss?.snapshot]);
    expect(json('state/drivers/simulated/machine.json').cluster, instant).toMatchObject({ installedVersion: '1.32.8' });
    expect(existsSync(join(home, 'state', 'covering.json')), instant).toBe(false);
    expect(await call('snapshot', 'delete', lossy[0]?.loss?.snapshot ?? '')).toMatchObject({ exit: 0 });
  }
});

/** Copies endlessly and writes its pid. One process, like the real one: the child of a shell would briefly outlive it. */
const ENDLESS = `#!/usr/bin/perl
use File::Path 'make_path';
open(my $pid, '>', "$ENV{COPIES}.new") or die;
print $pid "$$\\n";
close($pid);
rename("$ENV{COPIES}.new", $ENV{COPIES}) or die;
make_path($ARGV[-1], { error => \\my $errors }) while 1;
`;

test.each(['create', 'restore'])('a copy left by a killed %s is ended and does not get in the way', async (deed) => {
  const home = temporaryDirectory();
  const programs = temporaryDirectory();
  const copies = join(programs, 'pid');
  writeFileSync(join(programs, 'cp'), ENDLESS, { mode: 0o755 });
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '5' };
  const endless = { ...env, PATH: `${programs}:${process.env.PATH ?? ''}`, COPIES: copies };
  const call = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
  onTestFinished(async () => void (await call('shutdown')));

  expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
  expect(await call('snapshot', 'create', 'one')).toMatchObject({ exit: 0 });
  expect(await call('shutdown')).toMatchObject({ exit: 0 });
  expect(await rdctlProgram(['start', '--wait'], { entry: tool.entry(), env: endless })).toMatchObject({ exit: 0 });
  const { pid } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const working = call('snapshot', deed, deed === 'create' ? 'two' : 'one');
  let ended = false;
  void working.finally(() => {
    ended = true;
  });
  while (!ended && !existsSync(copies)) await new Promise((resolve) => setImmediate(resolve));
  const copy = Number(readFileSync(copies, 'utf8'));
  await killed(pid);
  expect(await working).toMatchObject({ exit: 1 });
  expect(await processTable.isAlive({ pid: copy })).toBe(true);

  expect(await call('start', '--wait')).toMatchObject({ exit: 0 });
  expect(await processTable.isAlive({ pid: copy })).toBe(false);
  expect(readdirSync(join(home, 'state', 'drivers', 'simulated'))).toEqual(['machine.json']);
  expect(readdirSync(join(home, 'snapshots'))).toHaveLength(1);
  expect(existsSync(join(home, 'state', 'copy.json'))).toBe(false);
  expect(await call('snapshot', 'create', 'three')).toMatchObject({ exit: 0 });
});
