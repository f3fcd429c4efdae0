import { expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import { CALM_MS } from '../../src/plan/healing.ts';
import type { HistoryEntry } from '../../src/plan/history.ts';
import { requestFor } from '../plan/planning.ts';
import { NOW, watchScene } from './watch-scene.ts';

const MEMORY = 'virtualMachine.memoryInGB';
const ENGINE = 'containerEngine.name';
const DEBUG = 'application.debug';
const WINDOW = { maintenance: { window: 'Sat 02:00-04:00', maxDeferMs: 7 * 86_400_000 } };
const HOUR = 3_600_000;

test('drift is reported when it happens, with who wrote it, and nothing is written', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false });
  expect(scene.watch.status()).toMatchObject([{ name: 'team', state: 'in sync', drift: [] }]);
  await scene.set(DEBUG, true);
  expect(scene.watch.status()).toMatchObject([
    {
      state: 'drifted',
      drift: [
        {
          path: DEBUG,
          before: true,
          after: false,
          heal: 'report',
          state: 'reported',
          by: { how: 'set', generation: 2 },
        },
      ],
    },
  ]);
  expect(scene.watch.notices()).toEqual([]);
  expect(scene.writes).toHaveLength(1);
  await scene.set(DEBUG, false);
  expect(scene.watch.status()).toMatchObject([{ state: 'in sync', drift: [] }]);
});

test('warn adds a notice and a warning in the log, once', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'warn' });
  await scene.set(DEBUG, true);
  scene.watch.changed();
  await scene.calm();
  expect(scene.watch.notices()).toEqual([
    '"application.debug" differs from the kept profile team (`set` (rdctl/1), generation 2). See `rdctl kept`.',
  ]);
  expect(scene.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
  expect(scene.writes).toHaveLength(1);
});

test('enforce sets all that differs back in one write, in the name of the profile', async () => {
  const scene = watchScene();
  await scene.keep(
    { [DEBUG]: false, 'images.namespace': 'web', [MEMORY]: 6 },
    { fields: { application: 'enforce', images: 'enforce' } },
  );
  await scene.store.write(({ desired: { settings } }) => ({
    next: {
      settings: {
        ...settings,
        application: { ...settings.application, debug: true },
        images: { ...settings.images, namespace: 'x' },
      },
    },
    answer: undefined,
    by: { how: 'api' },
  }));
  await scene.calm();
  expect(scene.value(DEBUG)).toBe(false);
  expect(scene.value('images.namespace')).toBe('web');
  expect(scene.writes.at(-1)?.by).toMatchObject({ how: 'heal', profile: 'team' });
  expect(scene.writes.filter(({ by }) => by.how === 'heal')).toHaveLength(1);
});

test('after three rounds against one manager the field is contested, until the profile is applied again', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  for (let round = 0; round < 4; round += 1) await scene.set(DEBUG, true);
  expect(scene.value(DEBUG)).toBe(true);
  expect(scene.writes.filter(({ by }) => by.how === 'heal')).toHaveLength(3);
  const [condition] = scene.watch.conditions();
  expect(condition).toMatchObject({ type: 'Contested', status: 'True', concern: 'attention' });
  expect(condition?.message).toContain('the kept profile team and `set` (rdctl/1)');
  await scene.set(DEBUG, false);
  expect(scene.watch.status()).toMatchObject([{ state: 'contested', drift: [], contested: [{ path: DEBUG }] }]);
  await scene.set(DEBUG, true);
  expect(scene.value(DEBUG)).toBe(true);
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  expect(scene.watch.conditions()).toEqual([]);
  await scene.set(DEBUG, true);
  expect(scene.value(DEBUG)).toBe(false);
});

test('a contested field that agrees for an hour is healed again', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  for (let round = 0; round < 4; round += 1) await scene.set(DEBUG, true);
  await scene.set(DEBUG, false);
  scene.clock.move(CALM_MS);
  await scene.calm();
  expect(scene.watch.conditions()).toEqual([]);
  await scene.set(DEBUG, true);
  expect(scene.value(DEBUG)).toBe(false);
});

test('rounds are counted by manager, and those of a day ago do not count', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  for (let round = 0; round < 3; round += 1) {
    await scene.set(DEBUG, true, { how: 'set' });
    await scene.set(DEBUG, true, { how: 'api', program: 'other/2' });
  }
  expect(scene.value(DEBUG)).toBe(false);
  scene.clock.move(24 * HOUR);
  await scene.calm();
  for (let round = 0; round < 3; round += 1) await scene.set(DEBUG, true, { how: 'set' });
  expect(scene.value(DEBUG)).toBe(false);
  expect(scene.watch.conditions()).toEqual([]);
});

test('a caller that changes its name each time is contested as well', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  for (let round = 0; round < 20; round += 1) await scene.set(DEBUG, true, { how: 'api', program: `caller/${round}` });
  expect(scene.writes.filter(({ by }) => by.how === 'heal')).toHaveLength(9);
  expect(scene.watch.conditions()).toHaveLength(1);
});

test.each(['rollback', 'return'] as const)(
  'a %s pauses healing of what it touched until the next apply',
  async (how) => {
    const scene = watchScene();
    await scene.keep({ [DEBUG]: false, 'images.namespace': 'web' }, { heal: 'enforce' });
    await scene.set(DEBUG, true, { how, to: 1 });
    expect(scene.value(DEBUG)).toBe(true);
    expect(scene.watch.status()).toMatchObject([{ state: 'paused', drift: [{ state: 'paused' }] }]);
    // Also after another write, and for other fields nothing is paused.
    await scene.set(DEBUG, false);
    await scene.set(DEBUG, true);
    await scene.set('images.namespace', 'x');
    expect(scene.value(DEBUG)).toBe(true);
    expect(scene.value('images.namespace')).toBe('web');
    expect(scene.watch.notices().join()).toContain('Healing is paused since');
    await scene.keep({ [DEBUG]: false, 'images.namespace': 'web' }, { heal: 'enforce' });
    await scene.set(DEBUG, true);
    expect(scene.value(DEBUG)).toBe(false);
  },
);

test('what was paused or contested stays so over a restart of the service', async () => {
  const first = watchScene();
  await first.keep({ [DEBUG]: false, 'images.namespace': 'web' }, { heal: 'enforce' });
  for (let round = 0; round < 4; round += 1) await first.set(DEBUG, true);
  await first.set('images.namespace', 'x', { how: 'rollback' });
  const stored = first.saved.at(-1);
  if (stored === undefined) throw new Error('nothing was saved');
  const second = watchScene({ stored, live: { [DEBUG]: true, 'images.namespace': 'x' }, generation: 9 });
  await second.calm();
  expect(second.writes).toEqual([]);
  const states = second.watch.status()[0]?.drift.map(({ path, state }) => `${path} ${state}`);
  expect(states?.sort()).toEqual([`${DEBUG} contested`, 'images.namespace paused']);
});

test('drift of the time without a service is healed at the start', async () => {
  const first = watchScene();
  await first.keep({ [DEBUG]: false }, { heal: 'enforce' });
  const stored = first.saved.at(-1) ?? '';
  const second = watchScene({ stored, live: { [DEBUG]: true } });
  await second.calm();
  expect(second.value(DEBUG)).toBe(false);
});

test('a locked field is never set back, and the log says so once', async () => {
  const scene = watchScene({ locks: { application: { debug: true } }, live: { [DEBUG]: true }, stored: KEPT_DEBUG });
  await scene.calm();
  scene.watch.changed();
  await scene.calm();
  expect(scene.writes).toEqual([]);
  expect(scene.watch.status()).toMatchObject([
    { drift: [{ state: 'blocked', message: expect.stringContaining('locked') }] },
  ]);
  expect(scene.logged.filter(({ message }) => message === 'drift')).toHaveLength(1);
});

const KEPT_DEBUG = JSON.stringify([
  {
    profile: {
      name: 'team',
      request: { settings: { version: 19, application: { debug: false } }, state: 'unmanaged', prune: [] },
      watch: { heal: 'enforce', fields: {} },
      files: [],
      places: {},
      appliedAt: new Date(NOW).toISOString(),
      generation: 1,
      pending: [],
    },
    fields: {},
  },
]);

test('what cannot be written is tried again later, not at once', async () => {
  let error: Error | undefined;
  const scene = watchScene({ failing: () => error });
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  const writing = scene.set(DEBUG, true);
  await Promise.resolve().then(() => Promise.resolve());
  error = new RdError('ERR_IO', 'the disk is full');
  await writing;
  expect(scene.watch.status()).toMatchObject([
    { drift: [{ state: 'failed', message: expect.stringContaining('the disk is full') }] },
  ]);
  const tried = scene.logged.filter(({ message }) => message === 'healing failed').length;
  expect(tried).toBe(1);
  scene.watch.changed();
  await scene.calm();
  expect(scene.logged.filter(({ message }) => message === 'healing failed')).toHaveLength(1);
  error = undefined;
  scene.clock.move(30_000);
  await scene.calm();
  expect(scene.value(DEBUG)).toBe(false);
});

test('nothing is healed during a snapshot, and everything after it', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  scene.setMaintenance('A snapshot is being restored.');
  await scene.set(DEBUG, true, { how: 'restore' });
  expect(scene.value(DEBUG)).toBe(true);
  scene.setMaintenance(undefined);
  scene.watch.changed();
  await scene.calm();
  expect(scene.value(DEBUG)).toBe(false);
});

test('what restarts waits for the window, and the rest is made at once', async () => {
  const scene = watchScene();
  await scene.keep({ [ENGINE]: 'containerd', [DEBUG]: true }, { heal: 'report' }, WINDOW);
  expect(scene.value(DEBUG)).toBe(true);
  expect(scene.value(ENGINE)).toBe('moby');
  const until = '2026-11-28T02:00:00.000Z';
  expect(scene.watch.status()).toMatchObject([
    { state: 'deferred', drift: [{ path: ENGINE, state: 'deferred', pending: true, until }] },
  ]);
  expect(scene.watch.notices()).toEqual([
    '"containerEngine.name" of the kept profile team needs a restart, deferred until Sat 02:00 (in 3 days).',
  ]);
  // Applied again, it does not wait longer; and a service that starts in the meantime knows it.
  scene.clock.move(24 * HOUR);
  await scene.keep({ [ENGINE]: 'containerd', [DEBUG]: true }, { heal: 'report' }, WINDOW);
  const later = watchScene({ stored: scene.saved.at(-1) ?? '', live: { [DEBUG]: true } });
  await later.calm();
  expect(later.watch.status()[0]?.drift[0]).toMatchObject({ since: new Date(NOW).toISOString(), until });
  later.clock.move(Date.parse(until) - NOW);
  await later.calm();
  expect(later.value(ENGINE)).toBe('containerd');
  expect(later.writes.at(-1)?.by).toMatchObject({ how: 'apply', profile: 'team' });
  expect(later.watch.status()).toMatchObject([{ state: 'in sync' }]);
});

test.each(['rollback', 'return'] as const)(
  'what waits is not made after a %s has gone back over its apply',
  async (how) => {
    const scene = watchScene();
    await scene.keep({ [ENGINE]: 'containerd', [DEBUG]: true }, {}, WINDOW);
    // One that ends at the apply leaves it.
    await scene.set('images.namespace', 'x');
    await scene.set('images.namespace', 'default', { how, to: 2 });
    expect(scene.watch.status()).toMatchObject([{ state: 'deferred', drift: [{ path: ENGINE, state: 'deferred' }] }]);
    await scene.set(DEBUG, false, { how, to: 1 });
    expect(scene.watch.status()[0]?.drift.find(({ path }) => path === ENGINE)).toMatchObject({ state: 'paused' });
    const later = watchScene({ stored: scene.saved.at(-1) ?? '', generation: 9 });
    for (const { clock, calm, value } of [scene, later]) {
      clock.move(8 * 24 * HOUR);
      await calm();
      expect(value(ENGINE)).toBe('moby');
    }
    await scene.keep({ [ENGINE]: 'containerd', [DEBUG]: true }, {}, WINDOW);
    scene.clock.move(8 * 24 * HOUR);
    await scene.calm();
    expect(scene.value(ENGINE)).toBe('containerd');
  },
);

test('after maxDefer it is made without a window', async () => {
  const scene = watchScene();
  await scene.keep(
    { [ENGINE]: 'containerd' },
    {},
    { maintenance: { window: 'Sat 02:00-04:00', maxDeferMs: 2 * HOUR } },
  );
  expect(scene.watch.status()[0]?.drift[0]?.until).toBe('2026-11-24T17:00:00.000Z');
  scene.clock.move(2 * HOUR);
  await scene.calm();
  expect(scene.value(ENGINE)).toBe('containerd');
});

test('with --now nothing waits, and drift that a restart heals waits for the window', async () => {
  const scene = watchScene();
  await scene.keep({ [ENGINE]: 'containerd', [DEBUG]: true }, { heal: 'enforce' }, { ...WINDOW, now: true });
  expect(scene.value(ENGINE)).toBe('containerd');
  // The backend of this test keeps running moby, so that containerd costs a restart.
  await scene.set(ENGINE, 'moby');
  await scene.set(DEBUG, false);
  expect(scene.value(DEBUG)).toBe(true);
  expect(scene.value(ENGINE)).toBe('moby');
  const [drift] = scene.watch.status()[0]?.drift ?? [];
  expect(drift).toMatchObject({ path: ENGINE, state: 'deferred', until: '2026-11-28T02:00:00.000Z' });
  expect(drift?.pending).toBeUndefined();
  scene.clock.move(Date.parse('2026-11-28T02:00:00Z') - NOW);
  await scene.calm();
  expect(scene.value(ENGINE)).toBe('containerd');
  expect(scene.writes.at(-1)?.by.how).toBe('heal');
});

test('data is never destroyed in a window, and the refused profile is not kept', async () => {
  const scene = watchScene({ live: { 'kubernetes.version': '1.33.4' } });
  const older = scene.keep({ 'kubernetes.version': '1.32.0' }, { heal: 'enforce' }, WINDOW);
  await expect(older).rejects.toMatchObject({ code: 'ERR_CONSENT_NEEDED' });
  expect(scene.watch.status()).toEqual([]);
  expect(scene.writes).toEqual([]);
});

test('drift that only a reset would heal needs a person', async () => {
  const scene = watchScene({ live: { 'kubernetes.version': '1.33.4' } });
  await scene.keep({ 'kubernetes.version': '1.32.0', [DEBUG]: true }, { heal: 'enforce' });
  // The cluster of this test stays as it is.
  await scene.set('kubernetes.version', '1.33.4');
  await scene.set(DEBUG, false);
  expect(scene.value(DEBUG)).toBe(true);
  expect(scene.value('kubernetes.version')).toBe('1.33.4');
  expect(scene.watch.status()).toMatchObject([{ drift: [{ severity: 'reset', state: 'needs a person' }] }]);
  expect(scene.watch.notices().join()).toContain('destroys data');
});

test('two kept profiles do not share a field, and a refused one changes nothing', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false });
  const other = scene.keep({ [DEBUG]: true, 'images.namespace': 'web' }, {}, { name: 'other' });
  await expect(other).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(/other cannot be kept beside team/),
    details: [DEBUG],
  });
  expect(scene.value('images.namespace')).toBe('default');
  await scene.keep({ 'images.namespace': 'web' }, {}, { name: 'other' });
  expect(scene.watch.status().map(({ name }) => name)).toEqual(['team', 'other']);
  expect(await scene.watch.release('team')).toBe(true);
  expect(await scene.watch.release('team')).toBe(false);
  await scene.keep({ [DEBUG]: true }, {}, { name: 'other' });
  expect(scene.watch.status().map(({ name }) => name)).toEqual(['other']);
});

test('the same apply twice writes nothing the second time', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: true }, { heal: 'enforce' });
  const [writes, saves] = [scene.writes.length, scene.saved.length];
  await scene.keep({ [DEBUG]: true }, { heal: 'enforce' });
  expect([scene.writes.length, scene.saved.length]).toEqual([writes, saves]);
});

test('an apply that is refused leaves the earlier profile kept', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  const request = { settings: { version: 19, application: { debug: true } }, state: 'unmanaged' as const, prune: [] };
  const keep = { name: 'team', watch: { heal: 'report' as const, fields: {} }, places: {} };
  const stale = scene.watch.apply(request, 'another tag', { how: 'apply', profile: 'team' }, keep, 'return');
  await expect(stale).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
  await scene.set(DEBUG, true);
  expect(scene.value(DEBUG)).toBe(false);
});

test('a service that was killed between keeping a profile and its write finishes the apply', async () => {
  const first = watchScene();
  await first.keep({ [DEBUG]: true });
  const [stored = ''] = first.saved;
  const second = watchScene({ stored });
  await second.calm();
  expect(second.value(DEBUG)).toBe(true);
  expect(second.writes[0]?.by).toMatchObject({ how: 'apply', profile: 'team' });
});

test('a kept profile that this release cannot read is named, and harms nothing', async () => {
  const scene = watchScene({ stored: KEPT_DEBUG.replace('"debug":false', '"debugg":false') });
  await scene.calm();
  expect(scene.watch.status()).toMatchObject([{ state: 'unusable' }]);
  expect(scene.watch.notices().join()).toContain('The kept profile team cannot be compared');
  expect(await scene.watch.release('team')).toBe(true);
});

test('a file of the user is compared where the profile mentions its setting, and put back', async () => {
  const scene = watchScene();
  const change = { file: '/home/x/.bashrc', action: 'update' as const, what: 'adds a directory to PATH' };
  await scene.keep({ 'application.pathManagementStrategy': 'rcfiles' }, { heal: 'report' });
  scene.setFileDrift([
    { part: 'path', change },
    { part: 'docker', change: { ...change, file: '/home/x/.docker/config.json' } },
  ]);
  scene.watch.changed();
  await scene.calm();
  expect(scene.watch.status()[0]?.drift).toMatchObject([
    { path: 'application.pathManagementStrategy', key: change.file, what: change.what, state: 'reported' },
  ]);
  expect(scene.repairs).toEqual([]);
  await scene.keep({ 'application.pathManagementStrategy': 'rcfiles' }, { heal: 'enforce' });
  await scene.calm();
  // It did not help: it is not tried again at once.
  expect(scene.repairs).toEqual([['path']]);
  expect(scene.watch.status()[0]?.drift).toMatchObject([{ state: 'failed' }]);
  scene.setFileDrift([]);
  scene.watch.changed();
  await scene.calm();
  expect(scene.watch.status()).toMatchObject([{ state: 'in sync' }]);
});

/** What a plan says about one field, and what becomes of it once it is written. */
test.each<[string, Parameters<ReturnType<typeof watchScene>['keep']>, 'set' | 'rollback', 'healing' | string]>([
  ['enforce', [{ [DEBUG]: false }, { heal: 'enforce' }], 'set', 'healing'],
  ['report', [{ [DEBUG]: false }], 'set', 'reported'],
  [
    'enforce with a window, where nothing restarts',
    [{ [DEBUG]: false }, { heal: 'enforce' }, WINDOW],
    'set',
    'healing',
  ],
  ['enforce after a rollback', [{ [DEBUG]: false }, { heal: 'enforce' }], 'rollback', 'paused'],
])('a plan foresees what becomes of a field: %s', async (_, keep, how, state) => {
  const scene = watchScene();
  await scene.keep(...keep);
  const by = { how, program: 'rdctl/1', ...(how === 'rollback' ? { to: 1 } : {}) };
  const plan = scene.planner.planFor(requestFor({ [DEBUG]: true }), { by });
  expect(plan.drift).toMatchObject([{ profile: 'team', path: DEBUG, state }]);
  await scene.set(DEBUG, true, by);
  expect(scene.value(DEBUG)).toBe(state !== 'healing');
  expect(scene.watch.status()[0]?.drift.map((drift) => drift.state)).toEqual(state === 'healing' ? [] : [state]);
});

test('an apply of what a kept profile sets back is refused, and writes nothing', async () => {
  const scene = watchScene();
  await scene.keep({ [DEBUG]: false }, { heal: 'enforce' });
  const request = requestFor({ [DEBUG]: true, 'images.namespace': 'x' });
  const by = { how: 'apply' as const, profile: 'team' };
  const plan = scene.planner.planFor(request, { by });
  expect(plan.summary).toMatchObject({ changes: 2, blocked: 1 });
  const refused = scene.planner.write(request, plan.tag ?? '', by, 'return');
  await expect(refused).rejects.toMatchObject({ code: 'ERR_SETTING_KEPT', details: [expect.stringContaining(DEBUG)] });
  // The tag of a plan that knows nothing of kept profiles is stale.
  const unaware = scene.planner.plan(request).tag ?? '';
  await expect(scene.planner.write(request, unaware, by, 'return')).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
  expect(scene.writes).toEqual([]);
  // The profile that keeps it may change it.
  expect(scene.planner.planFor(request, { by, kept: 'team' }).drift).toBeUndefined();
  await scene.keep({ [DEBUG]: true }, { heal: 'enforce' });
  expect(scene.value(DEBUG)).toBe(true);
});

test('a kept profile that cannot be compared blocks nothing', async () => {
  const stored = JSON.stringify([
    {
      profile: {
        ...{ name: 'old', request: requestFor({ [DEBUG]: 'no' as never }), watch: { heal: 'enforce', fields: {} } },
        ...{ files: [], places: {}, appliedAt: '', generation: 1, pending: [] },
      },
      fields: {},
    },
  ]);
  const { planner } = watchScene({ stored });
  expect(planner.planFor(requestFor({ [DEBUG]: true }), { by: { how: 'apply' } }).drift).toBeUndefined();
});

const STRICT = { heal: 'enforce' } as const;

test.each(['once', 'twice'])(
  'when the apply of another version of a profile is undone, %s, the one before is kept again and enforced',
  async (times) => {
    const scene = watchScene();
    await scene.keep({ [DEBUG]: false }, STRICT);
    for (const _ of times === 'once' ? [1] : [1, 2]) {
      const { generation } = await scene.keep({ [DEBUG]: true, 'images.namespace': 'new' }, STRICT);
      await scene.set(DEBUG, false, { how: 'return', to: generation - 1 });
      expect(scene.watch.status()).toMatchObject([{ name: 'team', generation: generation + 1, state: 'in sync' }]);
    }
    await scene.set('images.namespace', 'mine');
    await scene.set(DEBUG, true);
    expect(scene.value(DEBUG)).toBe(false);
    expect(scene.value('images.namespace')).toBe('mine');
    const stored = scene.saved.at(-1) ?? '';
    expect(stored).not.toContain('replaced');
    const later = watchScene({ stored, live: { [DEBUG]: true }, generation: 90 });
    await later.calm();
    expect(later.value(DEBUG)).toBe(false);
  },
);

test('a return over two applies of a profile puts back what was kept before both, and one to between them the second', async () => {
  for (const over of [1, 2]) {
    // The first is proven, the others are not.
    const scene = watchScene({ oldestRollback: 2 });
    const generations: number[] = [];
    for (const namespace of ['one', 'two', 'three']) {
      generations.push((await scene.keep({ 'images.namespace': namespace }, STRICT)).generation);
    }
    const to = generations.at(-1 - over) as number;
    const value = ['two', 'one'][over - 1] as string;
    await scene.set('images.namespace', value, { how: 'return', to });
    await scene.set('images.namespace', 'x');
    expect(scene.value('images.namespace')).toBe(over === 1 ? 'two' : 'one');
  }
});

test('a return to what came after the apply, and a rollback over it, put nothing back', async () => {
  for (const by of [{ how: 'return', to: 3 } as const, { how: 'rollback', to: 2 } as const]) {
    const scene = watchScene();
    await scene.keep({ [DEBUG]: true }, STRICT);
    await scene.keep({ [DEBUG]: false }, STRICT);
    await scene.set(DEBUG, true, by);
    expect(scene.watch.status()).toMatchObject([{ state: 'paused', drift: [{ path: DEBUG, state: 'paused' }] }]);
  }
});

test('what an apply replaced is forgotten once no return goes back over it', async () => {
  const scene = watchScene({ oldestRollback: 3 });
  await scene.keep({ [DEBUG]: true }, STRICT);
  await scene.keep({ [DEBUG]: false }, STRICT);
  expect(scene.saved.at(-1)).not.toContain('replaced');
  await scene.keep({ [DEBUG]: true }, STRICT);
  expect(scene.saved.at(-1)).toContain('replaced');
});

test('a return is followed by the next service, also one over an apply that was only announced', async () => {
  const first = watchScene();
  await first.keep({ [DEBUG]: false }, STRICT);
  await first.keep({ [DEBUG]: true, 'images.namespace': 'new' }, STRICT);
  const at = '2026-11-24T15:00:00Z';
  const entry = (generation: number, by: HistoryEntry['by']): HistoryEntry => ({ generation, at, by, changes: [] });
  const back = entry(8, { how: 'return', to: 1 });
  const announced = first.saved.find((each) => each.includes('replaced')) as string;
  const known = entry(3, { how: 'apply', profile: 'team' });
  for (const [stored, entries] of [
    [first.saved.at(-1), [back]],
    [announced, [known, back]],
    [announced, [known, back, entry(9, { how: 'start' })]],
  ] as [string, HistoryEntry[]][]) {
    const next = watchScene({ stored, entries, live: { [DEBUG]: false }, generation: 9 });
    await next.calm();
    expect(next.watch.status()).toMatchObject([{ generation: 8, state: 'in sync' }]);
    expect(next.saved.at(-1)).not.toContain('replaced');
    await next.set(DEBUG, true);
    expect(next.value(DEBUG)).toBe(false);
    expect(next.value('images.namespace')).toBe('default');
  }
  // It was not written: the next service finishes it, and that is undone as well.
  const next = watchScene({ stored: announced, live: { [DEBUG]: false }, generation: 5 });
  await next.calm();
  expect(next.writes).toMatchObject([{ generation: 6, by: { how: 'apply', profile: 'team' } }]);
  await next.set(DEBUG, false, { how: 'return', to: 5 });
  await next.set(DEBUG, true);
  expect(next.value(DEBUG)).toBe(false);
});

test('kept profiles are limited in number and size; one that is kept can still be applied again', async () => {
  const scene = watchScene();
  for (let count = 0; count < 32; count += 1) await scene.keep({}, {}, { name: `profile-${count}` });
  await expect(scene.keep({}, {}, { name: 'one-more' })).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: 'one-more cannot be kept, because 32 profiles are kept already; nothing was changed.',
  });
  await scene.keep({}, { heal: 'warn' }, { name: 'profile-0' });
  await scene.watch.release('profile-1');
  const places = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`field-${at}`, 'x'.repeat(5_000)]));
  await expect(scene.keep({}, {}, { name: 'large', places })).rejects.toThrow(
    /^large cannot be kept: .* the most are 4194304;/,
  );
  expect(scene.watch.status()).toHaveLength(31);
});
