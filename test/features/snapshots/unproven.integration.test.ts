import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { journalFile, readJournal } from '../../../src/features/snapshots/journal.ts';
import { recoverBackend } from '../../../src/features/snapshots/recovery.ts';
import type { SwapOperations } from '../../../src/features/snapshots/swap.ts';
import type { Settings } from '../../../src/settings/settings.gen.ts';
import {
  AFTER,
  BEFORE,
  everyStep,
  failing,
  keptStateOf,
  NEW,
  OLD,
  REPLACED,
  real,
  replacement,
  replaceWith,
  scene,
  settledWell,
  work,
} from '../../helpers/kept-scene.ts';

/** Settings of a second snapshot. */
const LATER: Settings = { ...BEFORE, virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 12 } };
/** The second snapshot in place of the first; neither contains the disk. */
const SECOND = { 'data/image': 'of long ago', cluster: 'made since', settings: 'later' };
const UNPROVEN = { ...NEW, cluster: 'made since', ...REPLACED };

/** A first snapshot was restored, has not been observed running, and has been changed since. */
async function unprovenScene() {
  const at = await scene();
  await replacement(keptStateOf(at, real(at)), at);
  writeFileSync(at.kept[2] ?? '', 'made since');
  const unproven = await readJournal(journalFile(at.here), at.kept);
  if (!unproven) throw new Error('there is no journal');
  const second = join(at.here.state, 'second');
  mkdirSync(join(second, 'data'), { recursive: true });
  writeFileSync(join(second, 'data', 'image'), 'of long ago');
  writeFileSync(join(second, 'cluster'), 'made since');
  const input = {
    ...replaceWith(at),
    snapshot: 'two',
    source: (live: string) => (live === at.kept[1] ? undefined : join(second, basename(live))),
    settings: LATER,
  };
  const stateWith = (operations: SwapOperations, isDead?: () => boolean) =>
    keptStateOf(at, operations, isDead, { unproven, settings: AFTER });
  return { at, input, stateWith, unproven };
}

describe('a restore over a restored state that never ran', () => {
  test('keeps the last state that ran until the second one has run', async () => {
    const { at, input, stateWith } = await unprovenScene();
    const state = stateWith(real(at));
    await state.replace(input, work());
    expect(at.seen()).toEqual({ ...SECOND, ...REPLACED });
    expect(await readJournal(journalFile(at.here), at.kept)).toMatchObject({ phase: 'proving', snapshot: 'two' });
    await state.confirm();
    expect(at.seen()).toEqual(SECOND);
    expect(existsSync(journalFile(at.here))).toBe(false);
  });

  test('rolls back to the last state that ran when the second does not run', async () => {
    const { at, input, stateWith } = await unprovenScene();
    const state = stateWith(real(at));
    await state.replace(input, work());
    await state.replace({ ...input, snapshot: 'three' }, work());
    expect(at.seen()).toEqual({ ...SECOND, ...REPLACED });
    await state.revert(work());
    expect(at.seen()).toEqual(OLD);
  });

  test.each(['before', 'after'] as const)('changes nothing when it fails %s any step', async (when) => {
    const count = await everyStep(async (step) => {
      const { at, input, stateWith, unproven } = await unprovenScene();
      const { operations, struck } = failing(real(at), step, { when, dies: false });
      const held = work();
      const state = stateWith(operations);
      const well = await settledWell(state.replace(input, held));
      expect(held.kept).toEqual([]);
      expect(withoutLeftovers(at.seen())).toEqual(well ? { ...SECOND, ...REPLACED } : UNPROVEN);
      expect(await readJournal(journalFile(at.here), at.kept)).toMatchObject({
        phase: 'proving',
        snapshot: well ? 'two' : 'one',
      });
      expect(state.unproven()).toMatchObject({ phase: 'proving', snapshot: well ? 'two' : 'one' });
      if (!well) expect(state.unproven()).toEqual(unproven);
      const now = { unproven: state.unproven() ?? unproven, settings: well ? LATER : AFTER };
      await keptStateOf(at, real(at), undefined, now).revert(work());
      expect(at.seen()).toEqual(OLD);
      return { struck: struck() };
    });
    expect(count).toBeGreaterThan(15);
  });

  test.each(['before', 'after'] as const)('loses neither when it is killed %s any step', async (when) => {
    const outcomes = new Set<string | undefined>();
    await everyStep(async (step) => {
      const { at, input, stateWith } = await unprovenScene();
      const { operations, isDead, struck } = failing(real(at), step, { when, dies: true });
      await settledWell(stateWith(operations, isDead).replace(input, work()));
      const { unproven, initialHold: found } = await recoverBackend(at.here);
      expect(found).toBeUndefined();
      expect(withoutLeftovers(at.seen())).toEqual(unproven?.snapshot === 'two' ? { ...SECOND, ...REPLACED } : UNPROVEN);
      expect(await readJournal(journalFile(at.here), at.kept)).toEqual(unproven);
      outcomes.add(unproven?.snapshot);
      const settings = unproven?.snapshot === 'two' ? LATER : AFTER;
      await keptStateOf(at, real(at), undefined, { ...(unproven ? { unproven } : {}), settings }).revert(work());
      expect(at.seen()).toEqual(OLD);
      return { struck: struck() };
    });
    expect([...outcomes].sort()).toEqual(['one', 'two']);
  });

  test('is canceled between the copy and the swap', async () => {
    const { at, input, stateWith } = await unprovenScene();
    const abort = new AbortController();
    const canceled = { ...input, check: async () => abort.abort() };
    await expect(stateWith(real(at)).replace(canceled, { ...work(), signal: abort.signal })).rejects.toThrow();
    expect(at.seen()).toEqual(UNPROVEN);
  });

  test.each([true, false])('a wipe instead is complete or changes nothing, also when killed (%s)', async (dies) => {
    const outcomes = new Set<string>();
    await everyStep(async (step) => {
      const { at, stateWith } = await unprovenScene();
      const { operations, isDead, struck } = failing(real(at), step, { when: 'before', dies });
      const well = await settledWell(stateWith(operations, isDead).wipe(work()));
      const { unproven } = await recoverBackend(at.here);
      expect(withoutLeftovers(at.seen())).toEqual(unproven ? UNPROVEN : { settings: 'after' });
      if (well) expect(unproven).toBeUndefined();
      outcomes.add(unproven ? 'nothing' : 'all');
      return { struck: struck() };
    });
    expect([...outcomes].sort()).toEqual(['all', 'nothing']);
  });
});

/** What never ran may stay until the next operation; it is in no one's way. */
function withoutLeftovers(seen: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(seen).filter(([name]) => !/\.(?:unproven|restoring)(?:\/|$)/.test(name)));
}
