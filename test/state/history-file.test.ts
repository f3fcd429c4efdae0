import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
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
