import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RdError } from '../../../src/errors.ts';
import { journalFile, readJournal } from '../../../src/features/snapshots/journal.ts';
import { recoverBackend } from '../../../src/features/snapshots/recovery.ts';
import type { SwapOperations } from '../../../src/features/snapshots/swap.ts';
import {
  AFTER,
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
  wiping,
  work,
} from '../../helpers/kept-scene.ts';
import { rounds } from '../../helpers/rounds.ts';

describe('a restore', () => {
  test('puts everything in place, keeps what it replaced, and removes that after confirmation', async () => {
    const at = await scene();
    const state = keptStateOf(at, real(at));
    await replacement(state, at);
    expect(at.seen()).toEqual({ ...NEW, ...REPLACED });
    expect(await readJournal(journalFile(at.here), at.kept)).toMatchObject({ phase: 'proving', snapshot: 'one' });
    await state.confirm();
    expect(at.seen()).toEqual(NEW);
    expect(await readJournal(journalFile(at.here), at.kept)).toBeUndefined();
  });

  test('can be rolled back, settings included', async () => {
    const at = await scene();
    const state = keptStateOf(at, real(at));
    await replacement(state, at);
    // The backend has been running with it.
    writeFileSync(join(at.kept[0] ?? '', 'image'), 'changed');
    writeFileSync(at.kept[1] ?? '', 'made anew');
    await state.revert(work());
    expect(at.seen()).toEqual(OLD);
    expect(await readJournal(journalFile(at.here), at.kept)).toBeUndefined();
  });

  test.each(['before', 'after'] as const)('that fails %s any step changes nothing', async (when) => {
    const count = await everyStep(async (step) => {
      const at = await scene();
      const { operations, struck } = failing(real(at), step, { when, dies: false });
      const held = work();
      if (await settledWell(keptStateOf(at, operations).replace(replaceWith(at), held))) {
        expect(at.seen()).toEqual({ ...NEW, ...REPLACED });
      } else {
        expect(at.seen()).toEqual(OLD);
        expect(held.kept).toEqual([]);
        expect(existsSync(journalFile(at.here))).toBe(false);
      }
      return { struck: struck() };
    });
    expect(count).toBeGreaterThan(12);
  });

  test.each(['before', 'after'] as const)(
    'that is killed %s any step is rolled back or completed by the next start',
    async (when) => {
      const outcomes = new Set<string>();
      await everyStep(async (step) => {
        const at = await scene();
        const { operations, isDead, struck } = failing(real(at), step, {
          when,
          dies: true,
        });
        await settledWell(keptStateOf(at, operations, isDead).replace(replaceWith(at), work()));
        const { unproven, initialHold: found } = await recoverBackend(at.here);
        expect(found).toBeUndefined();
        expect(at.seen()).toEqual(unproven ? { ...NEW, ...REPLACED } : OLD);
        expect(existsSync(journalFile(at.here))).toBe(unproven !== undefined);
        outcomes.add(unproven ? 'goes on' : 'undone');
        return { struck: struck() };
      });
      expect([...outcomes].sort()).toEqual(['goes on', 'undone']);
    },
  );

  test('whose rollback is killed at any step as well is rolled back by the start after that', async () => {
    let deaths = 0;
    await everyStep(
      async (step) => {
        let struck = false;
        await everyStep(async (second) => {
          const at = await scene();
          const first = failing(real(at), step, { when: 'after', dies: true });
          await settledWell(keptStateOf(at, first.operations, first.isDead).replace(replaceWith(at), work()));
          struck = first.struck();
          const again = failing(real(at), second, { when: 'before', dies: true });
          await recoverBackend(at.here, again.operations);
          if (again.isDead()) deaths++;
          const { unproven } = await recoverBackend(at.here);
          expect(at.seen()).toEqual(unproven ? { ...NEW, ...REPLACED } : OLD);
          return { struck: again.isDead() };
        });
        return { struck };
      },
      rounds(3, 1),
    );
    expect(deaths).toBeGreaterThan(rounds(15, 50));
  });

  test('that cannot be rolled back keeps the backend off, and the next start rolls it back', async () => {
    const at = await scene();
    const operationsOf = real(at);
    let swapping = false;
    const operations: SwapOperations = {
      ...operationsOf,
      async rename(from, to) {
        if (swapping) throw new RdError('ERR_IO', 'the disk is gone');
        swapping = to.endsWith('.before-restore');
        await operationsOf.rename(from, to);
      },
    };
    const held = work();
    await expect(keptStateOf(at, operations).replace(replaceWith(at), held)).rejects.toThrow('the disk is gone');
    expect(held.kept).toEqual([
      'The data of the backend could not be put back: the disk is gone. Restart the service to try it again.',
    ]);
    expect((await recoverBackend(at.here)).notices).toEqual([
      'The last service ended during the restore of the snapshot "one"; everything is as it was before. The backend restarts if its desired state is started.',
    ]);
    expect(at.seen()).toEqual(OLD);
  });

  test('that fills the disk frees the space first, and then records the rollback', async () => {
    const at = await scene();
    const operationsOf = real(at);
    const operations: SwapOperations = {
      ...operationsOf,
      async writeJournal(journal) {
        if (existsSync(`${at.kept[0]}.restoring`)) throw new RdError('ERR_IO', 'no space left on the device');
        await operationsOf.writeJournal(journal);
      },
    };
    const held = work();
    await expect(keptStateOf(at, operations).replace(replaceWith(at), held)).rejects.toThrow('no space left');
    expect(at.seen()).toEqual(OLD);
    expect(held.kept).toEqual([]);
    expect(existsSync(journalFile(at.here))).toBe(false);
  });

  test('is canceled between the copy and the swap', async () => {
    const at = await scene();
    const abort = new AbortController();
    const state = keptStateOf(at, real(at));
    const input = { ...replaceWith(at), check: async () => abort.abort() };
    await expect(state.replace(input, { ...work(), signal: abort.signal })).rejects.toThrow();
    expect(at.seen()).toEqual(OLD);
  });

  test('does not overwrite foreign files in its way', async () => {
    const at = await scene();
    writeFileSync(`${at.kept[1]}.before-restore`, 'of a person');
    const state = keptStateOf(at, real(at));
    await expect(replacement(state, at)).rejects.toThrow('is in the way');
    expect(at.seen()).toEqual({ ...OLD, 'disk.before-restore': 'of a person' });
    await expect(wiping(state)).rejects.toThrow('is in the way');
    expect(at.seen()).toEqual({ ...OLD, 'disk.before-restore': 'of a person' });
  });

  test('whose rollback is killed at any step is rolled back by the next start', async () => {
    const outcomes = new Set<string>();
    await everyStep(async (step) => {
      const at = await scene();
      await replacement(keptStateOf(at, real(at)), at);
      const unproven = await readJournal(journalFile(at.here), at.kept);
      const { operations, isDead, struck } = failing(real(at), step, { when: 'after', dies: true });
      const begin = { settings: AFTER, ...(unproven ? { unproven } : {}) };
      await settledWell(keptStateOf(at, operations, isDead, begin).revert(work()));
      const recovered = await recoverBackend(at.here);
      expect(recovered.unproven).toBeUndefined();
      expect(at.seen()).toEqual(OLD);
      outcomes.add(recovered.notices.join());
      return { struck: struck() };
    });
    expect(outcomes.size).toBe(2);
  });
});

describe('a wipe', () => {
  test('leaves nothing but the settings', async () => {
    const at = await scene();
    await wiping(keptStateOf(at, real(at)));
    expect(at.seen()).toEqual({ settings: 'before' });
    expect(existsSync(journalFile(at.here))).toBe(false);
  });

  test.each(['before', 'after'] as const)(
    'that is killed %s any step has removed everything or nothing',
    async (when) => {
      const outcomes = new Set<unknown>();
      await everyStep(async (step) => {
        const at = await scene();
        const { operations, isDead, struck } = failing(real(at), step, {
          when,
          dies: true,
        });
        await settledWell(keptStateOf(at, operations, isDead).wipe(work()));
        await recoverBackend(at.here);
        expect([OLD, { settings: 'before' }]).toContainEqual(at.seen());
        expect(existsSync(journalFile(at.here))).toBe(false);
        outcomes.add(Object.keys(at.seen()).length);
        return { struck: struck() };
      });
      expect(outcomes.size).toBe(2);
    },
  );

  test('that fails at any step either throws and has changed nothing, or is complete', async () => {
    const outcomes = new Set<boolean>();
    await everyStep(async (step) => {
      const at = await scene();
      const { operations, struck } = failing(real(at), step, {
        when: 'before',
        dies: false,
      });
      const well = await settledWell(keptStateOf(at, operations).wipe(work()));
      if (well) expect(existsSync(at.kept[0] ?? '')).toBe(false);
      else expect(at.seen()).toEqual(OLD);
      outcomes.add(well);
      return { struck: struck() };
    });
    expect(outcomes.size).toBe(2);
  });
});
