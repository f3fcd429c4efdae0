import { describe, expect, test } from 'vitest';
import type { Change, ForeseenDrift, Plan, PlanRequest } from '../../src/plan/change.ts';
import { foreseenDrift, withSetBackBlocked } from '../../src/plan/foresight.ts';
import type { FieldMemory, Writer } from '../../src/plan/healing.ts';
import type { Author } from '../../src/plan/history.ts';
import { changeName, type KeptProfile } from '../../src/plan/kept.ts';
import type { PartialRequest } from '../../src/plan/leave-out.ts';
import { plannedFor, requestFor, type Values } from './planning.ts';

const NOW = Date.parse('2026-11-24T15:00:00Z');
const NAMESPACE = 'images.namespace';
const MEMORY = 'virtualMachine.memoryInGB';
const PERSON: Writer = { by: { how: 'set' }, generation: 5, at: '2026-11-24T14:00:00.000Z' };
const WINDOW = { window: 'Sat 02:00-04:00', maxDeferMs: 7 * 86_400_000 };

function kept(values: Values, rest: Partial<KeptProfile> = {}, request: Partial<PlanRequest> = {}): KeptProfile {
  return {
    ...{ name: 'team', request: requestFor(values, request), watch: { heal: 'enforce', fields: {} }, files: [] },
    ...{ places: {}, appliedAt: '2026-11-24T14:00:00.000Z', generation: 6, pending: [] },
    ...rest,
  };
}

const change = (path: string, rest: Partial<Change> = {}): Change => ({
  ...{ path, action: 'update', severity: 'live', reason: 'a test' },
  ...rest,
});

interface Situation {
  profile: KeptProfile;
  /** What is planned. */
  request: PlanRequest;
  plan: Change[];
  after: Change[];
  how?: Author['how'];
  memory?: Record<string, FieldMemory>;
}

function foreseen({ profile, request, plan, after, how = 'apply', memory = {} }: Situation) {
  return foreseenDrift({
    ...{ profile, request, now: NOW, zone: 'UTC' },
    plan: { changes: plan } as Plan,
    after: { changes: after },
    by: { by: { how }, generation: 8, at: '2026-11-24T15:00:00.000Z' },
    memory: new Map(Object.entries(memory)),
    writer: () => PERSON,
  });
}

/** A plan that changes the namespace, which the profile keeps at `web`. */
const OTHER = {
  request: requestFor({ [NAMESPACE]: 'x' }),
  plan: [change(NAMESPACE, { before: 'web', after: 'x' })],
  after: [change(NAMESPACE, { before: 'x', after: 'web' })],
};
const PROFILE = kept({ [NAMESPACE]: 'web' });
const RESTART = [change(NAMESPACE, { after: 'web', severity: 'restart' })];

test.each<[string, Situation, Partial<ForeseenDrift>[]]>([
  ['enforce sets it back at once', { profile: PROFILE, ...OTHER }, [{ after: 'web', state: 'healing' }]],
  [
    'report and warn show it as drift',
    { ...OTHER, profile: kept({ [NAMESPACE]: 'web' }, { watch: { heal: 'enforce', fields: { images: 'warn' } } }) },
    [{ heal: 'warn', state: 'reported' }],
  ],
  [
    'what restarts waits for the window',
    { ...OTHER, profile: { ...PROFILE, maintenance: WINDOW }, after: RESTART },
    [{ state: 'deferred', until: '2026-11-28T02:00:00.000Z' }],
  ],
  [
    'a rollback pauses the healing',
    { ...OTHER, profile: PROFILE, how: 'rollback' },
    [{ state: 'paused', message: expect.stringContaining('since a rollback (generation 8)') }],
  ],
  [
    'a contested field is not set back',
    { ...OTHER, profile: PROFILE, memory: { [NAMESPACE]: { since: 1, rounds: {}, contested: PERSON } } },
    [{ state: 'contested' }],
  ],
  [
    'the third round against the same writer is the last',
    { ...OTHER, profile: PROFILE, how: 'set', memory: { [NAMESPACE]: { since: 1, rounds: { '`set`': 3 } } } },
    [{ state: 'contested' }],
  ],
  [
    'a heal that failed is tried again',
    {
      ...OTHER,
      profile: PROFILE,
      memory: { [NAMESPACE]: { since: 1, rounds: {}, failed: { message: 'x', attempts: 1, retryAt: NOW + 1 } } },
    },
    [{ state: 'healing' }],
  ],
  [
    'data is never destroyed',
    { ...OTHER, profile: PROFILE, after: [change(NAMESPACE, { after: 'web', severity: 'reset' })] },
    [{ state: 'needs a person' }],
  ],
  [
    'what the profile cannot change is shown',
    { ...OTHER, profile: PROFILE, after: [change(NAMESPACE, { blocked: { by: 'lock', message: 'locked' } })] },
    [{ state: 'blocked', message: 'locked' }],
  ],
  ['the same value is no drift', { ...OTHER, profile: PROFILE, after: [] }, []],
  [
    'another field of the profile is not of this plan',
    { ...OTHER, profile: kept({ [NAMESPACE]: 'web', [MEMORY]: 6 }), after: [change(MEMORY)] },
    [],
  ],
  [
    'a field that stays and that the profile is about to change',
    { ...OTHER, profile: { ...PROFILE, maintenance: WINDOW, pending: [NAMESPACE] }, plan: [], after: RESTART },
    [{ state: 'deferred' }],
  ],
  [
    'a field that stays and that the profile only reports',
    { ...OTHER, profile: { ...PROFILE, watch: { heal: 'report', fields: {} } }, plan: [], after: OTHER.after },
    [],
  ],
  [
    'an entry that the profile prunes',
    {
      profile: kept({}, {}, { prune: ['WSL.integrations'] }),
      request: requestFor({ 'WSL.integrations': { a: true } }),
      plan: [change('WSL.integrations', { key: 'a', action: 'create', after: true })],
      after: [change('WSL.integrations', { key: 'a', action: 'delete', before: true })],
    },
    [{ path: 'WSL.integrations', key: 'a', state: 'healing' }],
  ],
  [
    'power',
    {
      profile: kept({}, {}, { state: 'started' }),
      request: requestFor({}, { state: 'stopped' }),
      plan: [change('state', { after: 'stopped' })],
      after: [change('state', { after: 'started' })],
    },
    [{ path: 'state', after: 'started', state: 'healing' }],
  ],
])('%s', (_, situation, drift) => {
  const found = foreseen(situation);
  expect(found).toHaveLength(drift.length);
  expect(found).toMatchObject(drift);
});

describe('an apply of what is set back', () => {
  const live = { [NAMESPACE]: 'web', [MEMORY]: 6 };
  const set = (name: string, rest: Partial<ForeseenDrift> = {}): ForeseenDrift => ({
    ...{ profile: 'team', path: name, after: 'web', heal: 'enforce', state: 'healing', place: '/t.yaml:7:3' },
    ...rest,
  });
  async function blocked(request: PlanRequest, drift: ForeseenDrift[]) {
    const { plan: first, deed } = await plannedFor(live, request);
    const foreseen = { plan: { ...first, drift }, deed };
    const asked: PartialRequest[] = [];
    withSetBackBlocked(foreseen, request, (other) => {
      asked.push(other);
      return foreseen;
    });
    const left = asked[0] ? await plannedFor(live, asked[0]) : foreseen;
    return { first, ...withSetBackBlocked(foreseen, request, () => left) };
  }

  test('is blocked, and the rest is planned without it', async () => {
    const request = requestFor({ [NAMESPACE]: 'x', [MEMORY]: 4 }, { wishes: [NAMESPACE, MEMORY] });
    const { first, plan, deed } = await blocked(request, [set(NAMESPACE)]);
    expect(deed.patch).toEqual({ version: 19, virtualMachine: { memoryInGB: 4 } });
    expect(plan.changes.map(changeName)).toEqual([MEMORY, NAMESPACE]);
    expect(plan.changes[0]?.blocked).toBeUndefined();
    expect(plan.changes[1]).toMatchObject({
      ...{ before: 'web', after: 'x', severity: 'none' },
      blocked: {
        by: 'kept',
        message: 'The kept profile team sets it back to "web" (/t.yaml:7:3).',
        advice: expect.stringContaining('`rdctl release team`'),
      },
    });
    expect(plan.summary).toMatchObject({ changes: 2, blocked: 1, restarts: 1 });
    expect(plan.tag).not.toBe(first.tag);
  });

  test('costs nothing where nothing is left', async () => {
    const { plan } = await blocked(requestFor({ [MEMORY]: 4 }), [set(MEMORY, { after: 6 })]);
    expect(plan).toMatchObject({ blastRadius: [], summary: { changes: 1, blocked: 1, restarts: 0, severity: 'none' } });
  });

  test.each(['reported', 'deferred', 'paused', 'contested', 'needs a person', 'blocked'] as const)(
    'is not blocked by drift that is %s',
    async (state) => {
      const { first, plan } = await blocked(requestFor({ [NAMESPACE]: 'x' }), [set(NAMESPACE, { state })]);
      expect(plan).toEqual({ ...first, drift: [set(NAMESPACE, { state })] });
    },
  );

  test('says nothing of a secret', async () => {
    const drift = [set(NAMESPACE, { after: { sensitive: true } })];
    const { plan } = await blocked(requestFor({ [NAMESPACE]: 'x' }), drift);
    expect(plan.changes[0]?.blocked?.message).toBe('The kept profile team sets it back (/t.yaml:7:3).');
  });
});
