import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { fileOperations } from '../../src/os/atomic-file.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { lockHolder, lockHome } from '../../src/state/home-lock.ts';
import { fillReserve, withReserve } from '../../src/state/reserve.ts';
import { loadState, saveState } from '../../src/state/state-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

afterEach(() => void vi.restoreAllMocks());

/** From here on no new file fits, as on a full disk. */
function fullDisk(): void {
  vi.spyOn(fileOperations, 'writeNew').mockRejectedValue(Object.assign(new Error('full'), { code: 'ENOSPC' }));
}

const piecesIn = (directory: string) => readdirSync(join(directory, 'reserve')).length;

test('on a full disk a lock can be taken, updated and released any number of times', async () => {
  const directory = temporaryDirectory();
  const place = join(directory, 'service.lock');
  await fillReserve(directory);
  const before = piecesIn(directory);
  fullDisk();
  for (let round = 0; round < 50; round += 1) {
    const lock = await lockHome(place, '/home');
    await lock.update({ port: 6107 });
    await lock.update({ ending: true });
    expect(await lockHolder(place)).toMatchObject({ alive: true, port: 6107, ending: true });
    if (round % 2 === 0) await lock.release();
    else await lock.leave();
  }
  expect(await lockHolder(place)).toMatchObject({ alive: false, left: true });
  const last = await lockHome(place, '/home');
  await last.release();
  expect(readdirSync(place)).toEqual([]);
  expect(piecesIn(directory)).toBe(before);
});

test('on a full disk the state is written completely or not at all', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'state.json');
  const state = { driver: 'host' as const, power: 'started' as const, generation: 7, ...DEFAULT_BLOCKS };
  await saveState(file, state);
  await fillReserve(directory);
  const before = piecesIn(directory);
  fullDisk();
  for (let generation = 8; generation < 30; generation += 1) {
    await saveState(file, { ...state, power: 'stopped', generation });
    expect(await loadState(file)).toEqual({ kind: 'loaded', state: { ...state, power: 'stopped', generation } });
  }
  expect(piecesIn(directory)).toBe(before);
  expect(readdirSync(directory).toSorted()).toEqual(['reserve', 'state.json']);
});

test('a reserve piece that is the file itself, as a kill can leave it, is not overwritten', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'state.json');
  const state = { driver: 'host' as const, power: 'started' as const, generation: 7, ...DEFAULT_BLOCKS };
  await saveState(file, state);
  await fillReserve(directory);
  rmSync(join(directory, 'reserve', '0'));
  linkSync(file, join(directory, 'reserve', '0'));
  fullDisk();
  const operations = withReserve(directory);
  await operations.writeNew(join(directory, 'draft'), 'new', 0o600);
  expect(readFileSync(join(directory, 'draft'), 'utf8')).toBe('new');
  expect(await loadState(file)).toEqual({ kind: 'loaded', state });
});

test('what is larger than a piece, or has no reserve, is refused as before', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'state'));
  fullDisk();
  const operations = withReserve(directory);
  await expect(operations.writeNew(join(directory, 'none'), 'x', 0o600)).rejects.toMatchObject({ code: 'ENOSPC' });
  vi.restoreAllMocks();
  await fillReserve(directory);
  fullDisk();
  const large = join(directory, 'large');
  await expect(operations.writeNew(large, 'x'.repeat(4097), 0o600)).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(existsSync(large)).toBe(false);
  await operations.writeNew(large, 'small', 0o600);
  expect(readFileSync(large, 'utf8')).toBe('small');
  expect(statSync(large).mode & 0o777).toBe(0o600);
});
