import { describe, expect, test } from 'vitest';
import type { Severity } from '../../src/plan/change.ts';
import { estimatePlan } from '../../src/plan/offline.ts';
import { powerChange } from '../../src/plan/runtime-changes.ts';
import { lockRecord } from '../../src/settings/locks.ts';
import { settingsWith } from '../reconcile/worlds.ts';
import { requestFor, TARGET, type Values } from './planning.ts';

function estimate(base: Values, wanted: Values, rest = {}) {
  return estimatePlan({ request: requestFor(wanted), base: settingsWith(base), target: TARGET, ...rest });
}

describe('a plan from the schema alone', () => {
  test('is marked as estimated and guarantees nothing', () => {
    const plan = estimate({}, { 'containerEngine.name': 'containerd', 'application.debug': true });
    expect(plan).toMatchObject({ basis: 'estimated', generation: 0, pendingRestart: [] });
    expect(plan.summary.text).toBe('2 changes, 1 restart, estimated');
    expect(plan.warnings).toHaveLength(1);
  });

  test('says that nothing changes', () => {
    expect(estimate({}, { 'kubernetes.port': 6443 }).summary.text).toBe('nothing to change');
  });

  test.each<[Values, Values, Severity]>([
    [{}, { 'application.debug': true }, 'none'],
    [{}, { 'containerEngine.allowedImages.patterns': ['a'] }, 'live'],
    [{}, { 'kubernetes.port': 7000 }, 'restart'],
    [{ 'kubernetes.enabled': false }, { 'kubernetes.port': 7000 }, 'none'],
    [{}, { 'kubernetes.enabled': false }, 'restart'],
    [{ 'kubernetes.version': '1.31.2' }, { 'kubernetes.version': '1.30.2' }, 'reset'],
    [{ 'kubernetes.version': '1.31.2', 'kubernetes.enabled': false }, { 'kubernetes.version': '1.30.2' }, 'reset'],
    [{}, { 'kubernetes.version': '1.30.2' }, 'restart'],
    [{ 'containerEngine.name': 'containerd' }, { 'containerEngine.mobyStorageDriver': 'classic' }, 'none'],
  ])('%j then %j costs %s', (base, wanted, severity) => {
    expect(estimate(base, wanted).summary.severity).toBe(severity);
  });

  test('where nothing runs nothing restarts, and only data on disk can be lost', () => {
    const wanted = { 'containerEngine.name': 'containerd', 'kubernetes.port': 7000, 'application.debug': true };
    const started = { ...requestFor(wanted), state: 'started' as const };
    const plan = estimatePlan({
      request: started,
      base: settingsWith({}),
      target: TARGET,
      idle: true,
      power: [powerChange('started')],
    });
    expect(plan.changes.map(({ path, severity }) => [path, severity])).toEqual([
      ['application.debug', 'none'],
      ['containerEngine.name', 'none'],
      ['kubernetes.port', 'none'],
      ['state', 'live'],
    ]);
    expect(plan.changes.at(-1)).toMatchObject({ before: 'stopped', after: 'started' });
    expect(plan.summary.text).toBe('4 changes, starts the backend, estimated');
    const lower = { 'kubernetes.version': '1.30.2' };
    const base = { 'kubernetes.version': '1.31.2' };
    expect(estimate(base, lower, { idle: true }).summary.severity).toBe('reset');
  });

  test('lists the user files that a start with these settings changes', () => {
    const change = (what: string) => [{ file: `/home/user/${what}`, action: 'update' as const, what }];
    const facts = {
      foreseen: {
        path: { manual: change('out of PATH'), rcfiles: change('on PATH') },
        autostart: { on: change('at login'), off: change('not at login') },
        docker: { selected: change('selected'), 'given back': change('given back'), removed: change('removed') },
        kube: { present: change('cluster'), renewed: change('new cluster'), removed: change('no cluster') },
      },
    };
    const listed = (wanted: Values, files: { on: boolean; hasCluster: boolean }, base: Values = {}) =>
      estimate(base, wanted, { userFiles: { facts, ...files } }).userFiles?.map(({ what }) => what);
    const debug = { 'application.debug': true };
    expect(listed(debug, { on: true, hasCluster: true })).toEqual(['on PATH', 'selected', 'cluster']);
    expect(listed(debug, { on: true, hasCluster: false })).toEqual(['on PATH', 'selected']);
    expect(listed(debug, { on: false, hasCluster: true })).toEqual(['on PATH', 'given back']);
    const asked = { 'application.autoStart': true, 'containerEngine.name': 'containerd', 'kubernetes.enabled': false };
    const rest = ['removed', 'no cluster'];
    expect(listed(asked, { on: true, hasCluster: true })).toEqual(['on PATH', 'at login', ...rest]);
    // Only a service that created the entry removes it.
    expect(listed({ 'application.autoStart': false }, { on: true, hasCluster: true }, asked)).toEqual([
      ...['on PATH', 'not at login'],
      ...rest,
    ]);
    expect(listed({}, { on: true, hasCluster: true }), 'nothing to change').toEqual([]);
    expect(estimate({}, debug, { userFiles: { on: true, hasCluster: true } }).userFiles, 'integration off').toEqual([]);
    expect(estimate({}, debug).userFiles, 'not known').toBeUndefined();
  });

  test('respects the given locks', () => {
    const locks = lockRecord({ version: 19, kubernetes: { port: 6443 } });
    const plan = estimate({}, { 'kubernetes.port': 7000 }, { locks, lockedBy: 'locked.json' });
    expect(plan.changes[0]?.blocked?.message).toBe(
      '"kubernetes.port" is locked by locked.json; ask your administrator.',
    );
    expect(plan.summary).toMatchObject({ blocked: 1, restarts: 0 });
  });
});
