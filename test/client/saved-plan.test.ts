import { describe, expect, test } from 'vitest';
import { checkFresh, checkTarget, readSavedPlan, replayRequest, savePlan } from '../../src/client/saved-plan.ts';
import { canonicalJson, digestOf } from '../../src/json.ts';
import type { Change, LiveState, Plan, PlanRequest } from '../../src/plan/change.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { ENGINE_CHANGE, planWith } from '../helpers/plans.ts';
import { schemaCheck } from '../helpers/schema-check.ts';

const validPlan = schemaCheck('plan');

const NOW = new Date('2026-01-02T03:04:05Z');
const SECRET = 'correct horse';
const PASSWORD_CHANGE: Change = {
  path: 'experimental.virtualMachine.proxy.password',
  action: 'update',
  before: { sensitive: true },
  after: { sensitive: true },
  severity: 'none',
  reason: 'does not affect the machine, engine or cluster',
};

function request(password?: string): PlanRequest {
  const proxy = { experimental: { virtualMachine: { proxy: { password: password ?? '' } } } };
  return {
    settings: { version: 19, containerEngine: { name: 'containerd' }, ...(password === undefined ? {} : proxy) },
    state: 'started',
    prune: ['diagnostics.mutedChecks'],
  };
}

function live(change: (settings: ReturnType<typeof defaultSettings>) => void = () => undefined): LiveState {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  change(settings);
  return { settings, locks: {}, power: 'started' };
}

/** Saves a plan and reads it back, as two commands would. */
function saved(plan: Plan = planWith([ENGINE_CHANGE]), wanted: PlanRequest = request(), now: LiveState = live()) {
  const document = savePlan(plan, wanted, now, ['/team/profile.yaml'], NOW);
  return { document, plan: readSavedPlan(JSON.stringify(document), 'p.json') };
}

describe('the document', () => {
  test('is a plan of the published schema', () => {
    const { document } = saved();
    expect(validPlan(document)).toBe(true);
    expect(document.saved).toMatchObject({ createdAt: NOW.toISOString(), files: ['/team/profile.yaml'] });
  });

  test('contains no secret and nothing derived from one', () => {
    const one = JSON.stringify(saved(planWith([PASSWORD_CHANGE]), request(SECRET)).document);
    const two = JSON.stringify(saved(planWith([PASSWORD_CHANGE]), request('battery staple')).document);
    expect(one).not.toContain(SECRET);
    expect(one).toBe(two);
    const before = live((settings) => {
      settings.experimental.virtualMachine.proxy.password = SECRET;
    });
    expect(JSON.stringify(saved(planWith([PASSWORD_CHANGE]), request(SECRET), before).document)).toBe(one);
  });

  test.each([
    ['not JSON', 'version: 19'],
    ['something else', '{"version":19}'],
    ['another format', JSON.stringify({ ...saved().document, formatVersion: 2 })],
    ['a plan that was only printed', JSON.stringify(planWith([ENGINE_CHANGE]))],
    ['no target', JSON.stringify({ ...saved().document, target: {} })],
    ['no changes', JSON.stringify({ ...saved().document, changes: null })],
    ['an incomplete part', JSON.stringify({ ...saved().document, saved: { ...saved().document.saved, digests: {} } })],
  ])('refused: %s', (_what, text) => {
    expect(() => readSavedPlan(text, 'p.json')).toThrow(expect.objectContaining({ code: 'ERR_PLAN_INVALID' }));
  });
});

describe('the target of the plan', () => {
  const { plan } = saved();
  test.each([{ product: 'other' }, { home: '/elsewhere' }, { driver: 'host' }])('must match: %o', (other) => {
    const target = planWith([]).target;
    expect(() => checkTarget(plan, target)).not.toThrow();
    expect(() => checkTarget(plan, { ...target, ...other })).toThrow(
      expect.objectContaining({ code: 'ERR_WRONG_TARGET' }),
    );
  });
});

describe('staleness', () => {
  const fresh = planWith([ENGINE_CHANGE]);
  const { plan } = saved();

  test('a plan stays fresh when nothing has changed', () => {
    expect(() => checkFresh(plan, fresh, live())).not.toThrow();
  });

  test('a plan stays fresh when unmanaged fields change', () => {
    const other = live((settings) => {
      settings.images.showAll = false;
    });
    expect(() => checkFresh(plan, fresh, other)).not.toThrow();
  });

  test.each<[string, Plan, LiveState]>([
    [
      'a managed field',
      fresh,
      live((settings) => {
        settings.containerEngine.name = 'containerd';
      }),
    ],
    [
      'a pruned map',
      fresh,
      live((settings) => {
        settings.diagnostics.mutedChecks = { CHECK: true };
      }),
    ],
    ['the power state', fresh, { ...live(), power: 'stopped' }],
    ['the locks', fresh, { ...live(), locks: { images: { showAll: true } } }],
    ['what a change costs', planWith([{ ...ENGINE_CHANGE, severity: 'reset' }]), live()],
    [
      'what would be lost',
      planWith([ENGINE_CHANGE], { blastRadius: [{ what: 'all', lost: true, consent: 'kubernetes-reset' }] }),
      live(),
    ],
  ])('%s makes it stale', (_what, now, state) => {
    expect(() => checkFresh(plan, now, state)).toThrow(expect.objectContaining({ code: 'ERR_PLAN_STALE' }));
  });

  test('a different profile makes it stale', () => {
    expect(replayRequest(plan, request())).toEqual(request());
    expect(() => replayRequest(plan, { ...request(), state: 'stopped' })).toThrow(
      expect.objectContaining({ code: 'ERR_PLAN_STALE' }),
    );
  });
});

describe('secrets', () => {
  test('a secret that the plan sets needs the profile again', () => {
    const { plan } = saved(planWith([PASSWORD_CHANGE]), request(SECRET));
    expect(() => replayRequest(plan, undefined)).toThrow(
      expect.objectContaining({ code: 'ERR_PLAN_INVALID', advice: expect.stringContaining('-f /team/profile.yaml') }),
    );
    expect(replayRequest(plan, request(SECRET)).settings).toEqual(request(SECRET).settings);
  });

  test('a secret that the plan leaves alone is left out', () => {
    const { plan } = saved(planWith([ENGINE_CHANGE]), request(SECRET));
    expect(JSON.stringify(replayRequest(plan, undefined))).not.toMatch(/password|sensitive/);
  });
});

test('equal values have the same canonical form and digest', () => {
  expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}');
  expect(digestOf({ a: 1, b: 2 })).toBe(digestOf({ b: 2, a: 1 }));
  expect(digestOf([1, 2])).not.toBe(digestOf([2, 1]));
});
