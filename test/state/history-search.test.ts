import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { rollbackRequest } from '../../src/client/history.ts';
import { differences, settingsAfter } from '../../src/plan/diff.ts';
import { type Author, type HistoryEntry, recordedChanges } from '../../src/plan/history.ts';
import type { Desired } from '../../src/reconcile/contract.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../../src/settings/settings.gen.ts';
import { stateOf } from '../../src/state/desired-write.ts';
import { MOST_ENTRIES, readHistory } from '../../src/state/history-file.ts';
import { places } from '../../src/state/places.ts';
import { saveSettings } from '../../src/state/settings-file.ts';
import { saveState } from '../../src/state/state-file.ts';
import { LONG, rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { settingsWith } from '../reconcile/worlds.ts';
import { FAULTS, type FaultyFiles, faultyFiles } from './history-search/faults.ts';
import { type Accepted, briefEntry, expectedEntry, forwardChange, randomFrom } from './history-search/model.ts';
import { isWritten, openProcess, type StoreProcess, storedState } from './history-search/process.ts';

const WRITES = rounds(300, 10_000);
const MANAGERS = ['apply', 'set', 'api', 'rollback', 'policy'] as const;
type Manager = (typeof MANAGERS)[number];

const VALUES: Partial<Record<SettingPath, readonly (string | number | boolean | object)[]>> = {
  'virtualMachine.memoryInGB': [2, 3, 4, 5],
  'containerEngine.name': ['moby', 'containerd'],
  'containerEngine.allowedImages.patterns': [[], ['a/*'], ['a/*', 'b/*']],
  'images.namespace': ['default', 'web', 'team'],
  'application.debug': [true, false],
};

/** A home that one process after the other writes to, and what they have accepted. */
async function search(random: () => number) {
  const here = places({ RDCTL_HOME: temporaryDirectory() }, 'linux', '');
  mkdirSync(here.state, { recursive: true });
  const first: Desired = {
    ...{ settings: settingsWith(), ...DEFAULT_BLOCKS },
    ...{ power: 'started', generation: 1 },
  };
  await saveSettings(here.settingsFile, undefined, first.settings);
  await saveState(here.stateFile, stateOf('simulated', first));
  const readSettings = (): Settings => JSON.parse(readFileSync(here.settingsFile, 'utf8'));
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  /** What the history has to say; the newest, which it may still have. */
  let expected: ReturnType<typeof expectedEntry> = [];
  let last: Accepted | undefined;
  let port: number | undefined;
  let files: FaultyFiles = faultyFiles();
  let running: StoreProcess | undefined;
  const counts = { accepted: 0, refused: 0, killed: 0, largest: 0 };

  function accept(write: Accepted): void {
    // What was accepted is where the next write begins.
    if (last) expect(recordedChanges(last.next, write.before)).toEqual([]);
    last = write;
    expected = [...expected, ...expectedEntry(write)].slice(-MOST_ENTRIES - 50);
    counts.accepted += 1;
    for (const { after } of write.announced) port = Number(after);
  }

  function changed(settings: Settings): Settings {
    const copy = structuredClone(settings);
    const path = pick(Object.keys(VALUES) as SettingPath[]);
    setLeaf(copy, path, pick(VALUES[path] ?? []) as never);
    return copy;
  }

  /** Starts the next process, perhaps with a fault that ends it at once. */
  async function start(policy: boolean): Promise<void> {
    for (;;) {
      files = faultyFiles();
      if (random() < 0.2) files.arm(pick(FAULTS), 1 + Math.floor(random() * 10));
      const before = await storedState(here, readSettings);
      let asked: Settings | undefined;
      const opening = openProcess(here, files, readSettings, policy ? (now) => (asked ??= changed(now)) : undefined);
      const opened = await Promise.race([opening.catch(() => undefined), files.dead.then(() => 'dead' as const)]);
      files.disarm();
      if (opened && opened !== 'dead') {
        running = opened;
        if (opened.started) accept({ ...opened.started, how: opened.started.by.how, announced: [] });
        return;
      }
      if (opened === 'dead') counts.killed += 1;
      const stored = await storedState(here, readSettings);
      const next = { ...stored, settings: asked ?? stored.settings };
      // It had decided, and the next one completes that.
      if (stored.generation > before.generation && asked) accept({ before, next, how: 'policy', announced: [] });
    }
  }

  /** One write by a manager, with a fault in one of three; the process may die of it. */
  async function write(manager: Manager): Promise<void> {
    if (manager === 'policy') {
      await running?.close();
      return start(true);
    }
    if (!running) throw new Error('no process');
    const { store } = running;
    const by: Author = { how: manager, ...(manager === 'apply' ? { profile: 'team' } : {}) };
    const entries = manager === 'rollback' ? await readHistory(here.historyFile) : [];
    const hasForward = manager === 'api' && random() < 0.5;
    const isAlone = hasForward && random() < 0.5;
    let attempt: Accepted | undefined;
    if (random() < 0.33) files.arm(pick(FAULTS), 1 + Math.floor(random() * 14));
    const writing = isWritten(store, () => {
      const before = store.snapshot().desired;
      const settings = manager === 'rollback' ? rolledBack(before, entries, pick) : changed(before.settings);
      const power =
        manager === 'api' && !hasForward && random() < 0.3 ? pick(['started', 'stopped'] as const) : before.power;
      const announced = hasForward ? [forwardChange(port, 8000 + Math.floor(random() * 5))] : [];
      const values = isAlone ? {} : { settings, power };
      attempt = { before, next: { ...before, ...values, generation: before.generation + 1 }, how: manager, announced };
      return { ...(isAlone ? {} : { next: values }), ...(hasForward ? { announced } : {}), answer: undefined, by };
    });
    const result = await Promise.race([writing, files.dead.then(() => 'dead' as const)]);
    files.disarm();
    if (!attempt) throw new Error('nothing was attempted');
    if (result === true) {
      accept(attempt);
      if (hasForward) running.finished(attempt.next.generation);
    } else if (result === false) {
      counts.refused += 1;
    } else {
      counts.killed += 1;
      const { generation } = await storedState(here, readSettings);
      if (generation === attempt.next.generation) accept(attempt);
      await start(random() < 0.3);
    }
  }

  /** The history is what was accepted, in order, and leads to what is stored. */
  async function check(): Promise<void> {
    const entries = await readHistory(here.historyFile);
    const stored = await storedState(here, readSettings);
    counts.largest = Math.max(counts.largest, statSync(here.historyFile).size);
    expect(entries.length).toBeLessThanOrEqual(MOST_ENTRIES + 1);
    const taken = entries.filter(
      ({ generation, outcome }) => outcome?.result !== 'not applied' && generation <= stored.generation,
    );
    const oldest = taken[0]?.generation ?? 0;
    expect(taken.map(briefEntry)).toEqual(expected.filter(({ generation }) => generation >= oldest));
    expect(stored).toMatchObject({ settings: last?.next.settings, power: last?.next.power });
  }

  await start(false);
  return { write, check, counts, close: async () => running?.close() };
}

/** The settings before the last few entries. */
function rolledBack(
  { settings }: Desired,
  entries: readonly HistoryEntry[],
  pick: <T>(values: readonly T[]) => T,
): Settings {
  const target = entries.length === 0 ? undefined : pick(entries.slice(-5));
  if (!target) return settings;
  const { request } = rollbackRequest(entries, target.generation - 1);
  return settingsAfter(settings, differences({ settings }, request));
}

test('random writes by five managers with faults and kills leave a history that is complete and in order', async () => {
  const random = randomFrom(testSeed());
  const { write, check, counts, close } = await search(random);
  const heap: number[] = [];
  const started = Date.now();
  for (let n = 1; n <= WRITES; n += 1) {
    await write(MANAGERS[Math.floor(random() * MANAGERS.length)] ?? 'set');
    if (n % 25 === 0) await check();
    if (n % 1000 === 0) heap.push(heapBytes());
  }
  await check();
  await close();
  expect(counts.accepted).toBeGreaterThan(WRITES / 2);
  expect(counts.refused).toBeGreaterThan(WRITES / 50);
  expect(counts.killed).toBeGreaterThan(WRITES / 50);
  // The history was full after the first thousand or two.
  const [, , settled = 0] = heap;
  if (heap.length > 3) expect(heap.at(-1)).toBeLessThan(settled + 8 * 2 ** 20);
  if (LONG) {
    const mebibytes = heap.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(' ');
    process.stderr.write(`${JSON.stringify({ ...counts, ms: Date.now() - started })} heap in MiB: ${mebibytes}\n`);
  }
}, 1_800_000);

/** What is in use after a collection. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
