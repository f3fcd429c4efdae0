import { expect, test } from 'vitest';
import { explainManagers } from '../../src/client/explain.ts';
import { managerOf, managersAt, managerText, takeovers } from '../../src/client/managers.ts';
import type { Change } from '../../src/plan/change.ts';
import type { Author, HistoryEntry } from '../../src/plan/history.ts';
import { managersOf } from '../../src/state/field-managers.ts';

const NOW = new Date(2026, 10, 24, 15, 30, 0).getTime();
const HOUR = 3_600_000;
const at = (hoursAgo: number) => new Date(NOW - hoursAgo * HOUR).toISOString();

const sha256 = 'a'.repeat(64);
const applyOf = (path: string, more: Partial<Author> = {}): Author => ({
  how: 'apply',
  files: [{ path, sha256 }],
  ...more,
});
const TEAM = applyOf('/team.yaml', { profile: 'team' });
const MINE = applyOf('/mine.yaml', { profile: 'mine' });

/** Every write leads to it, and every plan is compared with it. */
const LIVE = 9;

/** Entries of an author each; the last one is the newest, an hour ago. */
function history(...writes: [Author, ...string[]][]): HistoryEntry[] {
  return writes.map(([by, ...paths], index) => ({
    generation: index + 1,
    at: at(writes.length - index),
    by,
    changes: paths.map((path) => ({ path, before: 1, after: LIVE })),
  }));
}

function change(path: string, more: Partial<Change> = {}): Change {
  return { path, action: 'update', before: LIVE, after: 2, severity: 'none', reason: '', ...more };
}

/** The warnings of a plan of `/mine.yaml` that changes these settings. */
function warnings(entries: HistoryEntry[], ...changes: (string | Change)[]): string[] {
  return takeovers(
    { changes: changes.map((each) => (typeof each === 'string' ? change(each) : each)) },
    managersOf(entries),
    entries,
    { files: ['/mine.yaml'], profile: 'mine' },
    NOW,
  );
}

const SET: Author = { how: 'set' };
const BOT: Author = { how: 'api', token: 'ci-bot', program: 'curl/8' };

test.each<[string, HistoryEntry[], string[]]>([
  ['nothing set it', history([TEAM, 'b']), []],
  ['the same file set it', history([MINE, 'a']), []],
  ['another file set it', history([TEAM, 'a']), ['/team.yaml 1 hour ago (generation 1)']],
  ['another file set it before this one did', history([TEAM, 'a'], [MINE, 'a']), []],
  [
    'one of several files is the same',
    history([{ ...TEAM, files: [...(TEAM.files ?? []), ...(MINE.files ?? [])] }, 'a']),
    [],
  ],
  [
    'the other file came with a token',
    history([{ ...TEAM, token: 'ci' }, 'a']),
    ['/team.yaml with token ci 1 hour ago (generation 1)'],
  ],
  ['this file came with a token', history([{ ...MINE, token: 'ci' }, 'a']), []],
  ['a token set it', history([BOT, 'a']), ['token ci-bot 1 hour ago (generation 1)']],
  ['a token set it after this profile', history([MINE, 'a'], [BOT, 'a']), ['token ci-bot 1 hour ago (generation 2)']],
  ['set, and this profile was never applied', history([SET, 'a']), []],
  ['set before the last apply of this profile', history([SET, 'a'], [MINE, 'b']), []],
  [
    'set since the last apply of this profile',
    history([MINE, 'a'], [SET, 'a']),
    ['`rdctl set` 1 hour ago (generation 2)'],
  ],
  [
    'a program without a token since then',
    history([MINE, 'b'], [{ how: 'api' }, 'a']),
    ['a program 1 hour ago (generation 2)'],
  ],
  [
    'a rollback since then',
    history([MINE, 'a'], [{ how: 'rollback', to: 0 }, 'a']),
    ['a rollback to generation 0 1 hour ago (generation 2)'],
  ],
  [
    'a return since then',
    history([MINE, 'a'], [{ how: 'return', to: 0 }, 'a']),
    ['a return to generation 0 after a failed apply 1 hour ago (generation 2)'],
  ],
  [
    'a restored snapshot since then',
    history([MINE, 'a'], [{ how: 'restore' }, 'a']),
    ['a restored snapshot 1 hour ago (generation 2)'],
  ],
  [
    'another profile was healed',
    history([{ ...TEAM, how: 'heal' }, 'a']),
    ['the healing of /team.yaml 1 hour ago (generation 1)'],
  ],
  ['this profile was healed', history([{ ...MINE, how: 'heal' }, 'a']), []],
  ['a healed profile is known by its name alone', history([{ how: 'heal', profile: 'mine' }, 'a']), []],
])('%s', (_title, entries, expected) => {
  expect(warnings(entries, 'a')).toEqual(expected.map((who) => `"a" was set by ${who}; this profile takes it over.`));
});

test('starts and stops are no disagreement, another profile about the power state is', () => {
  expect(warnings(history([MINE, 'state'], [{ how: 'power' }, 'state']), 'state')).toEqual([]);
  expect(warnings(history([MINE, 'state'], [TEAM, 'state']), 'state')).toHaveLength(1);
});

test('what cannot be changed, and what never took effect, is no takeover', () => {
  const entries = history([TEAM, 'a']);
  expect(warnings(entries, change('a', { blocked: { by: 'lock', message: '' } }))).toEqual([]);
  const failed = entries.map((entry) => ({ ...entry, outcome: { result: 'not applied' as const, at: at(0) } }));
  expect(warnings(failed, 'a')).toEqual([]);
});

test('fields that were set together are one warning, of entries of a map with their key', () => {
  const entries = history([TEAM, 'a', 'b', 'c', 'd', 'e'], [BOT, 'f']);
  expect(warnings(entries, 'a', 'f', 'b', 'c')).toEqual([
    '"a", "b" and "c" were set by /team.yaml 2 hours ago (generation 1); this profile takes them over.',
    '"f" was set by token ci-bot 1 hour ago (generation 2); this profile takes it over.',
  ]);
  expect(warnings(entries, 'a', 'b', 'c', 'd', 'e')[0]).toMatch(/^"a", "b" and 3 more settings were set by/);
  const map: HistoryEntry = {
    generation: 1,
    at: at(1),
    by: TEAM,
    changes: [{ path: 'm', key: 'x', after: true }],
  };
  expect(warnings([map], change('m', { key: 'x', before: true }))[0]).toMatch(/^"m\[x\]" was set by/);
  expect(warnings([map], change('m', { key: 'y' }))).toEqual([]);
});

test('a value that came about in another way, such as by editing a file, has no known manager', () => {
  const entries = history([TEAM, 'a']);
  expect(warnings(entries, change('a', { before: 7 }))).toEqual([]);
  const managers = managersOf(entries);
  expect(managersAt(managers, 'a', LIVE)).toHaveLength(1);
  expect(managersAt(managers, 'a', 7)).toEqual([]);
  const secret = { sensitive: true } as const;
  expect(
    managerOf(
      managersOf([{ ...(entries[0] as HistoryEntry), changes: [{ path: 's', after: secret }] }]),
      change('s', { before: secret }),
    ),
  ).toBeDefined();
});

test('an entry of a map that was removed has no value, and what removed it is known', () => {
  const entry: HistoryEntry = { generation: 1, at: at(1), by: BOT, changes: [{ path: 'm', key: 'x', before: true }] };
  const managers = managersOf([entry]);
  expect(managersAt(managers, 'm', {})).toEqual([]);
  const { before: _, ...create } = change('m', { key: 'x', action: 'create' });
  expect(managerOf(managers, create)?.by).toEqual(BOT);
});

test('the last apply is known even if its entry was dropped', () => {
  const entries = history([MINE, 'b'], [SET, 'a']);
  const managers = managersOf(entries);
  const planned = { files: ['/mine.yaml'] };
  expect(takeovers({ changes: [change('a')] }, managers, entries.slice(1), planned, NOW)).toHaveLength(1);
});

test.each<[Author, string]>([
  [{ how: 'apply', files: [{ path: '-', sha256 }] }, 'standard input'],
  [{ how: 'apply' }, 'a saved plan'],
  [{ how: 'apply', profile: 'team' }, 'the profile team'],
  [{ how: 'set', token: 'ci-bot' }, 'token ci-bot'],
  [{ how: 'policy' }, 'a deployment profile'],
  [{ how: 'start' }, '`rdctl start`'],
  [{ how: 'rollback', to: 3, token: 'ci-bot' }, 'a rollback to generation 3 with token ci-bot'],
  [TEAM, 'team.yaml'],
])('%o is %s', (by, text) => {
  expect(managerText({ by })).toBe(text);
});

test('an administrator manages a locked setting, whatever set it before', () => {
  const managers = managersOf(history([TEAM, 'images.namespace']));
  const explained = (locked: boolean) =>
    explainManagers(
      {
        path: 'images.namespace',
        value: LIVE,
        locked,
        layers: [{ layer: locked ? 'locked profile' : 'stored', source: '/etc/locked.json', wins: true }],
      },
      managers,
    );
  expect(explained(true)).toMatchObject({
    managedBy: { how: 'policy', locked: '/etc/locked.json' },
    lastChange: { generation: 1 },
  });
  expect(explained(false)).toMatchObject({ managedBy: { how: 'apply', profile: 'team', generation: 1 } });
});
