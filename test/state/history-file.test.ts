import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FileOperations, fileOperations } from '../../src/os/atomic-file.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { MOST_ENTRIES, openHistory, readHistory } from '../../src/state/history-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const NOW = () => Date.parse('2026-01-02T03:04:05Z');
const AT = '2026-01-01T00:00:00.000Z';

const entry = (generation: number): HistoryEntry => ({
  generation,
  at: AT,
  by: { how: 'set' },
  changes: [{ path: 'virtualMachine.memoryInGB', before: 1, after: generation }],
});

function place(): string {
  return join(temporaryDirectory(), 'history.jsonl');
}

test('entries come back in order with their outcomes, from a private file', async () => {
  const path = place();
  expect(await readHistory(path)).toEqual([]);
  const history = await openHistory(path, 0, NOW);
  await history.add(entry(1));
  await history.add(entry(2));
  await history.close(1, { result: 'converged', at: AT });
  expect(await readHistory(path)).toEqual([{ ...entry(1), outcome: { result: 'converged', at: AT } }, entry(2)]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a loss that comes later belongs to its entry, also after the file was shortened', async () => {
  const path = place();
  const history = await openHistory(path, 0, NOW);
  await history.add(entry(1));
  const loss = { items: ['deletes it'], snapshot: 'before-generation-1' };
  await history.lose(1, loss);
  // Of no entry, and of another release.
  await history.lose(7, loss);
  appendFileSync(path, `${JSON.stringify({ generation: 1, loss: { items: 'all' } })}\n`);
  expect(await readHistory(path)).toEqual([{ ...entry(1), loss }]);
  for (let generation = 2; generation <= MOST_ENTRIES / 2; generation += 1) await history.add(entry(generation));
  expect((await readHistory(path))[0]).toEqual({ ...entry(1), loss });
});

test('what is being written is among the entries', async () => {
  const history = await openHistory(place(), 0, NOW);
  const outcome = { result: 'converged', at: AT } as const;
  const writing = [history.add(entry(1)), history.close(1, outcome)];
  expect(await history.entries()).toEqual([{ ...entry(1), outcome }]);
  await Promise.all(writing);
});

test('a line that a crash cut off is skipped, and the next one is whole', async () => {
  const path = place();
  const history = await openHistory(path, 0, NOW);
  await history.add(entry(1));
  const line = readFileSync(path, 'utf8');
  for (let cut = 1; cut < line.length; cut += 7) {
    writeFileSync(path, `${line}${line.slice(0, cut)}`);
    const again = await openHistory(path, 1, NOW);
    await again.add(entry(2));
    expect(await readHistory(path)).toEqual([entry(1), entry(2)]);
  }
});

test('an entry whose write was never made is marked at the next start', async () => {
  const path = place();
  const history = await openHistory(path, 0, NOW);
  await history.add(entry(1));
  await history.add(entry(2));
  await openHistory(path, 1, NOW);
  const [first, second] = await readHistory(path);
  expect(first?.outcome).toBeUndefined();
  expect(second?.outcome).toEqual({ result: 'not applied', at: '2026-01-02T03:04:05.000Z' });
});

test('a number that is given again shows that its first write failed', async () => {
  const path = place();
  const history = await openHistory(path, 0, NOW);
  await history.add(entry(1));
  await history.add({ ...entry(1), by: { how: 'power' } });
  expect((await readHistory(path)).map(({ by, outcome }) => [by.how, outcome?.result])).toEqual([
    ['set', 'not applied'],
    ['power', undefined],
  ]);
});

test('the oldest entries go when a service starts', async () => {
  const path = place();
  const history = await openHistory(path, 0, NOW);
  mkdirSync(join(path, '..'), { recursive: true });
  for (let generation = 1; generation <= MOST_ENTRIES + 1; generation += 1) {
    appendFileSync(path, `${JSON.stringify({ entry: entry(generation) })}\n`);
  }
  await history.close(MOST_ENTRIES + 1, { result: 'converged', at: AT });
  await openHistory(path, MOST_ENTRIES + 1, NOW);
  const kept = await readHistory(path);
  expect(kept).toHaveLength(MOST_ENTRIES / 2);
  expect(kept.at(-1)).toMatchObject({ generation: MOST_ENTRIES + 1, outcome: { result: 'converged' } });
});

/** A history that is one entry short of dropping. */
async function fullHistory(operations?: FileOperations) {
  const path = place();
  const seen: number[] = [];
  const failures: unknown[] = [];
  mkdirSync(join(path, '..'), { recursive: true });
  for (let generation = 1; generation <= MOST_ENTRIES; generation += 1) {
    appendFileSync(path, `${JSON.stringify({ entry: entry(generation) })}\n`);
  }
  const history = await openHistory(path, MOST_ENTRIES, NOW, {
    ...(operations ? { operations } : {}),
    onDropFailure: (error) => failures.push(error),
  });
  history.onOldest((generation) => seen.push(generation));
  return { path, history, seen, failures };
}

test('the oldest entries also go while a service runs, and those who ask hear what is left', async () => {
  const { path, history, seen } = await fullHistory();
  for (let generation = MOST_ENTRIES + 1; generation <= 4 * MOST_ENTRIES; generation += 1) {
    await history.add(entry(generation));
    await history.close(generation, { result: 'converged', at: AT });
    const kept = await readHistory(path);
    expect(kept.length).toBeLessThanOrEqual(MOST_ENTRIES + 1);
    expect(kept.length).toBeGreaterThanOrEqual(MOST_ENTRIES / 2);
    expect(kept.at(-1)).toEqual({ ...entry(generation), outcome: { result: 'converged', at: AT } });
    expect(kept.map((each) => each.generation)).toEqual(kept.map((_, index) => generation - kept.length + 1 + index));
  }
  expect(seen[0]).toBe(1);
  expect(seen.length).toBe(7);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect((await readHistory(path))[0]?.generation).toBe(seen.at(-1));
});

test('a kill while entries are dropped leaves the old or the new history', async () => {
  for (const fatal of ['mkdir', 'writeNew', 'rename', 'syncDirectory'] as const) {
    let reach = () => {};
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    const { path, history } = await fullHistory({
      ...fileOperations,
      [fatal]: async (name: string, data?: string) => {
        if (fatal === 'writeNew') writeFileSync(name, data?.slice(0, 100) ?? '');
        reach();
        return new Promise<never>(() => undefined);
      },
    });
    await history.add(entry(MOST_ENTRIES + 1));
    await reached;
    const kept = await readHistory(path);
    expect(kept.length).toBe(fatal === 'syncDirectory' ? MOST_ENTRIES / 2 : MOST_ENTRIES + 1);
    const again = await openHistory(path, MOST_ENTRIES + 1, NOW);
    await again.add(entry(MOST_ENTRIES + 2));
    const after = await readHistory(path);
    expect(after.map(({ generation }) => generation)).toEqual(
      after.map((_, index) => MOST_ENTRIES + 3 - after.length + index),
    );
  }
});

test('where old entries cannot be dropped, new ones are still added, and it is tried again', async () => {
  let isFull = true;
  const { path, history, failures } = await fullHistory({
    ...fileOperations,
    async writeNew(...args) {
      if (isFull) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      return fileOperations.writeNew(...args);
    },
  });
  for (let n = 1; n <= 60; n += 1) await history.add(entry(MOST_ENTRIES + n));
  expect(failures).toHaveLength(2);
  expect(await readHistory(path)).toHaveLength(MOST_ENTRIES + 60);
  isFull = false;
  for (let n = 61; n <= 120; n += 1) await history.add(entry(MOST_ENTRIES + n));
  const kept = await readHistory(path);
  expect(kept.length).toBeLessThan(MOST_ENTRIES);
  expect(kept.at(-1)?.generation).toBe(MOST_ENTRIES + 120);
});

test('a huge entry is kept, and nothing before it', async () => {
  const { path, history } = await fullHistory();
  const huge = { ...entry(MOST_ENTRIES + 1), changes: [{ path: 'x', after: 'y'.repeat(5_000_000) }] };
  await history.add(huge);
  await history.close(huge.generation, { result: 'converged', at: AT });
  expect((await readHistory(path)).map(({ generation }) => generation)).toEqual([huge.generation]);
});

test('nothing is written through a link', async () => {
  const path = place();
  const other = join(temporaryDirectory(), 'other');
  writeFileSync(other, '');
  symlinkSync(other, path);
  await expect(openHistory(path, 0, NOW).then((history) => history.add(entry(1)))).rejects.toMatchObject({
    code: 'ERR_IO',
  });
  expect(readFileSync(other, 'utf8')).toBe('');
});
