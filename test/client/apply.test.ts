import { describe, expect, test } from 'vitest';
import { applyDesired, isWorse } from '../../src/client/apply.ts';
import type { ApplyClient, ApplyEvent, ApplyInput } from '../../src/client/carry-out.ts';
import { carryOutForeign } from '../../src/client/rancher-desktop/apply.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Change, Plan, PlanRequest } from '../../src/plan/change.ts';
import type { Deed } from '../../src/plan/deed.ts';
import { lossesOf } from '../../src/plan/losses.ts';
import type { ApplyReply, ApplyStep, ApplyWork, StatusDocument } from '../../src/reconcile/status-document.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { ENGINE_CHANGE, planWith, statusWith } from '../helpers/plans.ts';

const REQUEST: PlanRequest = {
  settings: { version: 19, containerEngine: { name: 'containerd' } },
  state: 'unmanaged',
  prune: [],
};
const RESET: Change = {
  path: 'kubernetes.version',
  action: 'replace',
  before: '1.33.4',
  after: '1.32.8',
  severity: 'reset',
  reason: 'a lower version deletes its data',
};
const LOST = { lost: true, consent: 'kubernetes-reset' } as const;
const LOSS = { blastRadius: [{ what: 'deletes the cluster', ...LOST }] };
const POWER: Change = {
  path: 'state',
  action: 'update',
  before: 'stopped',
  after: 'started',
  severity: 'live',
  reason: 'it starts',
};
const STOP: Change = { ...POWER, before: 'started', after: 'stopped', severity: 'restart' };
const LOCKED: Change = {
  path: 'images.showAll',
  action: 'update',
  before: true,
  after: false,
  severity: 'none',
  reason: 'not available',
  blocked: { by: 'lock', message: '"images.showAll" is locked by /etc/x/locked.json.' },
};

interface Script {
  /** One after the other; the last one repeats. */
  plans: Plan[];
  /** Writes that fail because the settings changed. */
  moved?: number;
  /** One after the other; the last one repeats. */
  statuses?: StatusDocument[];
  /** An application that only accepts settings. */
  foreign?: true;
  /** The response of the service to an apply. */
  sent?: ApplyReply['sent'];
}

/** What carries out a plan whose only setting is the engine. */
function deedOf({ changes }: Plan): Deed {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  return {
    next: { settings, ...DEFAULT_BLOCKS },
    ...(changes.includes(ENGINE_CHANGE) ? { patch: REQUEST.settings } : {}),
    steps: { extensions: [], forwards: { ensure: [], remove: [] } },
    after: { settings },
  };
}

/** A service that plays a script and records each call. */
function scripted({ plans, moved = 0, statuses = [], foreign, sent = ['settings'] }: Script) {
  const calls: { call: string; body?: unknown; ifMatch?: string | undefined; tag?: string }[] = [];
  let planned = 0;
  let refusals = moved;
  const settings: JsonObject = defaultSettings({ platform: 'linux', arch: 'x64' });
  const refuse = (code: ErrorCode) => {
    if (refusals === 0) return;
    refusals -= 1;
    throw new RdError(code, 'moved');
  };
  const server = {
    planWithLive: async (request: PlanRequest) => {
      calls.push({ call: 'plan', body: request });
      const plan = plans[Math.min(planned, plans.length - 1)];
      const etag = `"${planned}"`;
      planned += 1;
      if (!plan) throw new Error('no plan in the script');
      const live = { settings, locks: {}, power: 'started' as const, portForwards: [], etag };
      return { plan: { tag: 'a', ...plan }, live, ...(foreign ? { deed: deedOf(plan) } : {}) };
    },
    putSettings: async (body: JsonObject, { ifMatch }: { ifMatch?: string } = {}) => {
      calls.push({ call: 'put', body, ifMatch });
      refuse('ERR_PRECONDITION_FAILED');
      return { text: 'settings updated; no restart required', generation: 3, ignoredKeys: [] };
    },
    apply: async (request: PlanRequest, tag: string) => {
      calls.push({ call: 'apply', body: request, tag });
      refuse('ERR_PLAN_STALE');
      return { kind: 'ApplyReply', formatVersion: 1, generation: 3, sent, continues: false };
    },
    setBackendState: async (state: 'STARTED' | 'STOPPED') => {
      calls.push({ call: 'power', body: state });
      return { text: 'received backend state', generation: 3, ignoredKeys: [] };
    },
    status: async () => (statuses.length > 1 ? (statuses.shift() ?? statusWith()) : (statuses[0] ?? statusWith())),
    connection: { host: '127.0.0.1', port: 1, user: 'u', password: 'p', foreign: false, reached: { by: 'word' } },
    request: () => Promise.reject(new Error('not in the script')),
    addPortForward: () => Promise.reject(new Error('not in the script')),
    removePortForward: () => Promise.reject(new Error('not in the script')),
  } satisfies ApplyClient & Parameters<typeof carryOutForeign>[0];
  const client: ApplyClient = foreign ? { ...server, carryOut: (...plan) => carryOutForeign(server, ...plan) } : server;
  const writes = () => calls.filter(({ call }) => call !== 'plan');
  return { client, calls, writes };
}

function input(client: ApplyClient, rest: Partial<ApplyInput> = {}): ApplyInput & { events: ApplyEvent[] } {
  const events: ApplyEvent[] = [];
  return {
    client,
    request: REQUEST,
    status: statusWith(),
    skipLocked: false,
    wait: true,
    timeoutMs: 1000,
    clock: { now: () => 0, sleep: async () => undefined },
    signal: new AbortController().signal,
    consent: async (plan) => ({ missing: lossesOf(plan) }),
    onEvent: (event) => events.push(event),
    events,
    ...rest,
  };
}

/** With the tag that a service gives it. */
const tagged = (tag: string, changes = [ENGINE_CHANGE]) => planWith(changes, { tag });

describe('an rdctl service', () => {
  test('receives nothing when nothing differs', async () => {
    const { client, writes } = scripted({ plans: [planWith([])] });
    const outcome = await applyDesired(input(client));
    expect(outcome).toMatchObject({ outcome: 'unchanged', writes: 0 });
    expect(writes()).toEqual([]);
  });

  test('carries out the approved plan, settings and power in one request', async () => {
    const request: PlanRequest = { ...REQUEST, state: 'started' };
    const { client, writes } = scripted({ plans: [tagged('a', [ENGINE_CHANGE, POWER])], sent: ['settings', 'power'] });
    const running = input(client, { request });
    expect(await applyDesired(running)).toMatchObject({ outcome: 'applied', writes: 2 });
    expect(writes()).toEqual([{ call: 'apply', body: request, tag: 'a' }]);
    expect(running.events.filter(({ type }) => type === 'sent')).toHaveLength(2);
  });

  test('is not waited for with --wait=false', async () => {
    const { client } = scripted({ plans: [planWith([ENGINE_CHANGE])] });
    expect((await applyDesired(input(client, { wait: false }))).outcome).toBe('sent');
  });

  test('is planned again when the plan has changed; a saved plan is not', async () => {
    const again = scripted({ plans: [tagged('a'), tagged('b'), tagged('c')], moved: 2 });
    const running = input(again.client);
    expect(await applyDesired(running)).toMatchObject({ writes: 1 });
    expect(again.writes().map(({ tag }) => tag)).toEqual(['a', 'b', 'c']);
    expect(running.events.filter(({ type }) => type === 'moved')).toHaveLength(2);
    const exact = scripted({ plans: [tagged('a')], moved: 1 });
    await expect(applyDesired(input(exact.client, { exact: true }))).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
    expect(exact.writes()).toHaveLength(1);
  });

  test('is given up on when its settings keep changing', async () => {
    const { client, writes } = scripted({ plans: [tagged('a')], moved: 99 });
    await expect(applyDesired(input(client))).rejects.toMatchObject({ code: 'ERR_PLAN_STALE' });
    expect(writes()).toHaveLength(5);
  });

  test('that is still applying is waited for before the first plan', async () => {
    const work = { generation: 3, state: 'running' as const, steps: [] };
    const statuses = [statusWith({ apply: work }), statusWith({ apply: { ...work, state: 'done' } })];
    const { client, calls } = scripted({ plans: [planWith([])], statuses });
    const running = input(client, { status: statusWith({ apply: work }) });
    expect(await applyDesired(running)).toMatchObject({ outcome: 'unchanged' });
    expect(running.events.map(({ type }) => type)).toEqual(['earlier', 'progress', 'progress', 'planned']);
    expect(calls).toHaveLength(1);
  });
});

describe('the files of the user', () => {
  const files = (observedGeneration: number, state: 'managed' | 'failed') => {
    const hostIntegration: StatusDocument['hostIntegration'] = {
      observedGeneration,
      files: [
        { part: 'path', file: '/home/me/.bashrc', state, ...(state === 'failed' ? { message: 'read-only' } : {}) },
      ],
    };
    return statusWith({ hostIntegration });
  };

  test('are waited for after the backend, also when nothing differs', async () => {
    for (const plan of [tagged('a'), planWith([])]) {
      const { client } = scripted({ plans: [plan], statuses: [files(2, 'managed'), files(3, 'managed')] });
      const { status } = await applyDesired(input(client, { status: files(2, 'managed') }));
      expect(status.hostIntegration?.observedGeneration).toBe(3);
    }
  });

  test('that cannot be changed are an error that names them, in the end', async () => {
    const { client } = scripted({ plans: [tagged('a')], statuses: [files(3, 'failed')] });
    await expect(applyDesired(input(client))).rejects.toMatchObject({
      code: 'ERR_USER_FILES',
      details: ['/home/me/.bashrc: read-only'],
    });
  });

  test('are tried again by an apply that has nothing else to do', async () => {
    const { client, writes } = scripted({
      plans: [planWith([])],
      statuses: [files(3, 'managed')],
      sent: ['files'],
    });
    const running = input(client, { status: files(3, 'failed') });
    expect(await applyDesired(running)).toMatchObject({ outcome: 'applied', writes: 1 });
    expect(writes()).toHaveLength(1);
    expect(running.events).toContainEqual({ type: 'files' });
  });

  test('of an older release, which does not report a generation, are not waited for', async () => {
    const { client } = scripted({ plans: [planWith([])] });
    const status = statusWith({ hostIntegration: { files: [] } });
    expect(await applyDesired(input(client, { status }))).toMatchObject({ outcome: 'unchanged' });
  });
});

test('that starts another apply after the plan is waited for, also with a saved plan', async () => {
  const work: ApplyWork = { generation: 3, state: 'running', steps: [] };
  for (const exact of [false, true]) {
    const statuses = [statusWith({ apply: work }), statusWith({ apply: { ...work, state: 'done' } })];
    const { client, writes } = scripted({ plans: [tagged('a'), tagged('b')], statuses });
    let busy = true;
    const running = input(
      {
        ...client,
        apply: async (...args) => {
          if (!busy) return client.apply(...args);
          busy = false;
          throw new RdError('ERR_BACKEND_LOCKED', 'an earlier apply is still at work');
        },
      },
      { exact },
    );
    expect(await applyDesired(running)).toMatchObject({ outcome: 'applied' });
    expect(running.events.map(({ type }) => type)).toEqual(expect.arrayContaining(['earlier']));
    expect(running.events.map(({ type }) => type)).not.toContain('moved');
    expect(writes().map(({ tag }) => tag)).toEqual(['b']);
  }
});

describe('the steps after the settings', () => {
  const work = (rest: Partial<ApplyWork>): ApplyWork => ({ generation: 3, state: 'running', steps: [], ...rest });
  const step: ApplyStep = { what: 'install', name: 'example/tool:1' };
  const error = { code: 'ERR_EXTENSION_INVALID' as const, message: 'no', details: ['why'], advice: 'do that' };

  function stage(...statuses: StatusDocument[]) {
    const { client } = scripted({ plans: [tagged('a'), tagged('b', [])], statuses });
    return input({ ...client, apply: async (...args) => ({ ...(await client.apply(...args)), continues: true }) });
  }

  test('are shown once and counted', async () => {
    const running = stage(
      statusWith({ apply: work({}) }),
      statusWith({ apply: work({ steps: [step] }) }),
      statusWith({ apply: work({ steps: [step], state: 'done' }) }),
    );
    expect(await applyDesired(running)).toMatchObject({ outcome: 'applied', writes: 2 });
    expect(running.events.filter(({ type }) => type === 'step')).toEqual([{ type: 'step', step }]);
  });

  test('fail with the error of the service', async () => {
    const running = stage(statusWith({ apply: work({ steps: [step], state: 'failed', error }) }));
    await expect(applyDesired(running)).rejects.toMatchObject(error);
  });

  test('are unknown to a restarted service', async () => {
    const running = stage(statusWith({ generation: 4, observedGeneration: 4 }));
    await expect(applyDesired(running)).rejects.toMatchObject({ message: expect.stringContaining('was restarted') });
  });
});

describe('another application', () => {
  const foreign = true;

  test('gets one PUT with only the differences, conditional on the ETag that was read', async () => {
    const { client, writes } = scripted({ plans: [planWith([ENGINE_CHANGE])], foreign });
    const outcome = await applyDesired(input(client));
    expect(outcome).toMatchObject({ outcome: 'applied', writes: 1 });
    expect(writes()).toEqual([
      { call: 'put', body: { version: 19, containerEngine: { name: 'containerd' } }, ifMatch: '"0"' },
    ]);
  });

  test('gets only the power state where only that differs, and after the settings where both do', async () => {
    const request: PlanRequest = { ...REQUEST, state: 'started' };
    const alone = scripted({ plans: [planWith([POWER])], foreign });
    await applyDesired(input(alone.client, { request }));
    expect(alone.writes()).toEqual([{ call: 'power', body: 'STARTED' }]);
    const both = scripted({ plans: [planWith([ENGINE_CHANGE, STOP])], foreign });
    await applyDesired(input(both.client, { request: { ...REQUEST, state: 'stopped' } }));
    expect(both.writes().map(({ call, body }) => (call === 'power' ? body : call))).toEqual(['put', 'STOPPED']);
  });

  test('is planned again when its settings have changed', async () => {
    const { client, writes } = scripted({ plans: [planWith([ENGINE_CHANGE])], moved: 2, foreign });
    expect(await applyDesired(input(client))).toMatchObject({ writes: 1 });
    expect(writes().map(({ ifMatch }) => ifMatch)).toEqual(['"0"', '"1"', '"2"']);
  });
});

describe('a backend that gave up', () => {
  const failed = statusWith({ converged: false, backendState: 'ERROR' });

  test('is asked to retry, even when nothing differs', async () => {
    const again = statusWith({ converged: false, backendState: 'STARTING', observedGeneration: 2 });
    const { client, writes } = scripted({ plans: [planWith([])], statuses: [again, statusWith()], sent: ['retry'] });
    const running = input(client, { status: failed });
    expect(await applyDesired(running)).toMatchObject({ outcome: 'applied', writes: 1, status: { generation: 3 } });
    expect(writes()).toHaveLength(1);
    expect(running.events.map(({ type }) => type)).toContain('retrying');
  });

  test('is left alone when it should stay stopped', async () => {
    const stopped = { ...failed, power: 'stopped' as const };
    const { client, writes } = scripted({ plans: [planWith([])], statuses: [stopped] });
    await expect(applyDesired(input(client, { status: stopped }))).rejects.toMatchObject({
      code: 'ERR_CONVERGE_FAILED',
    });
    expect(writes()).toEqual([]);
  });
});

test('an apply reports only phases that were still open at its first write', async () => {
  const phase = (name: string, startedAt: string, ms?: number) => ({
    name,
    startedAt,
    ...(ms === undefined ? {} : { ms }),
  });
  const over = phase('engine start', '2026-01-02T03:04:05.000Z', 1);
  const begun = phase('cluster start', '2026-01-02T03:04:06.000Z');
  const own = phase('engine start', '2026-01-02T03:05:00.000Z', 2);
  const ended = { ...begun, ms: 3 };
  const { client } = scripted({
    plans: [planWith([ENGINE_CHANGE])],
    statuses: [statusWith({ converged: false, phases: [over, begun] }), statusWith({ phases: [over, ended, own] })],
  });
  const running = input(client, { status: statusWith({ phases: [over, begun] }) });
  expect((await applyDesired(running)).status.phases).toEqual([ended, own]);
  const shown = running.events.flatMap((event) => (event.type === 'progress' ? event.status.phases : []));
  expect(shown).toEqual([begun, ended, own]);
});

describe('refusals come before any write', () => {
  test.each([
    ['a lock', [ENGINE_CHANGE, LOCKED], 'ERR_SETTING_LOCKED'],
    [
      'the driver',
      [{ ...ENGINE_CHANGE, blocked: { by: 'unsupported' as const, message: 'no' } }],
      'ERR_SETTING_UNSUPPORTED',
    ],
  ])('%s', async (_who, changes, code) => {
    const { client, writes } = scripted({ plans: [planWith(changes)] });
    await expect(applyDesired(input(client))).rejects.toMatchObject({ code });
    expect(writes()).toEqual([]);
  });

  test('--skip-locked applies the rest and lists what it skipped', async () => {
    const { client, calls } = scripted({ plans: [planWith([ENGINE_CHANGE, LOCKED]), planWith([ENGINE_CHANGE])] });
    const request = { ...REQUEST, settings: { ...REQUEST.settings, images: { showAll: false, namespace: 'x' } } };
    const outcome = await applyDesired(input(client, { request, skipLocked: true }));
    expect(outcome.skipped).toEqual([LOCKED]);
    expect(calls[1]?.body).toEqual({
      settings: { version: 19, containerEngine: { name: 'containerd' }, images: { namespace: 'x' } },
      state: 'unmanaged',
      prune: [],
    });
    expect(outcome.writes).toBe(1);
  });
});

test('unsupported settings are skipped where requested, but a lock still refuses', async () => {
  const unsupported: Change = { ...LOCKED, blocked: { by: 'unsupported', message: 'host has no cluster' } };
  const plans = [planWith([ENGINE_CHANGE, unsupported]), planWith([ENGINE_CHANGE])];
  const { client, calls } = scripted({ plans });
  const request = { ...REQUEST, settings: { ...REQUEST.settings, images: { showAll: false } } };
  const outcome = await applyDesired(input(client, { request, skipUnsupported: true }));
  expect(outcome).toMatchObject({ skipped: [unsupported], writes: 1 });
  expect(calls[1]?.body).toMatchObject({ settings: { images: {} } });
  await expect(applyDesired(input(scripted({ plans }).client, { request }))).rejects.toMatchObject({
    code: 'ERR_SETTING_UNSUPPORTED',
  });
  const locked = scripted({ plans: [planWith([LOCKED])] });
  await expect(applyDesired(input(locked.client, { request, skipUnsupported: true }))).rejects.toMatchObject({
    code: 'ERR_SETTING_LOCKED',
  });
});

test('a forward that the driver cannot create does not block a restore of the rest', async () => {
  const blocked = { by: 'unsupported' as const, message: 'Port forwards: there is no cluster.' };
  const forward: Change = { ...LOCKED, path: 'portForwards', key: 'default/web:80', after: 8080, blocked };
  const { client, writes } = scripted({ plans: [planWith([ENGINE_CHANGE, forward]), planWith([ENGINE_CHANGE])] });
  const entries = [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 }];
  const request: PlanRequest = { ...REQUEST, portForwards: { entries, exclusive: true } };
  const outcome = await applyDesired(input(client, { request, skipUnsupported: true }));
  expect(outcome.skipped).toEqual([forward]);
  const portForwards = { entries: [], exclusive: true, leaves: ['default/web:80'] };
  expect(writes()).toMatchObject([{ call: 'apply', body: { portForwards } }]);
});

test('the advice depends on what blocks the change', async () => {
  const blocked = (one: Change['blocked']) => ({ ...LOCKED, ...(one ? { blocked: one } : {}) });
  const adviceOf = async (...changes: Change[]) => {
    const { client } = scripted({ plans: [planWith(changes)] });
    return applyDesired(input(client)).then(
      () => undefined,
      (error: RdError) => error.advice,
    );
  };
  expect(await adviceOf(LOCKED)).toMatch(/--skip-locked/);
  expect(await adviceOf(blocked({ by: 'unsupported', message: 'no' }))).toMatch(/use a driver that supports it\.$/);
  const permit = { by: 'unsupported' as const, message: 'no', advice: 'Permit it.' };
  expect(await adviceOf(blocked(permit), blocked(permit))).toBe('Permit it.');
  expect(await adviceOf(LOCKED, blocked(permit))).toMatch(/--skip-locked .* Permit it\.$/);
});

describe('consent', () => {
  test('nothing is destroyed without it', async () => {
    const { client, writes } = scripted({ plans: [planWith([RESET], LOSS)] });
    await expect(applyDesired(input(client))).rejects.toMatchObject({
      code: 'ERR_CONSENT_NEEDED',
      details: ['deletes the cluster (kubernetes-reset)'],
      advice: expect.stringContaining('--allow kubernetes-reset'),
    });
    expect(writes()).toEqual([]);
  });

  test('is not needed for a restart', async () => {
    const { client } = scripted({ plans: [planWith([ENGINE_CHANGE])] });
    const consent = async () => {
      throw new Error('asked');
    };
    await expect(applyDesired(input(client, { consent }))).resolves.toMatchObject({ writes: 1 });
  });

  test('is asked for again only when the new plan is worse', async () => {
    const request: PlanRequest = { ...REQUEST, settings: { version: 19, kubernetes: { version: '1.32.8' } } };
    const asked: string[] = [];
    const consent = async (plan: Plan) => {
      asked.push(plan.blastRadius.map(({ what }) => what).join());
      return { items: lossesOf(plan), by: 'prompt' as const };
    };
    const same = planWith([RESET], LOSS);
    const worse = planWith([RESET], { blastRadius: [...LOSS.blastRadius, { what: 'deletes more', ...LOST }] });
    await applyDesired(input(scripted({ plans: [same, same], moved: 1 }).client, { request, consent }));
    expect(asked).toEqual(['deletes the cluster']);
    await applyDesired(input(scripted({ plans: [same, worse], moved: 1 }).client, { request, consent }));
    expect(asked.slice(1)).toEqual(['deletes the cluster', 'deletes the cluster,deletes more']);
  });

  test('a plan is worse when its severity, resets or losses grow', () => {
    const restart = planWith([ENGINE_CHANGE]);
    expect(isWorse(planWith([RESET]), restart)).toBe(true);
    expect(isWorse(planWith([ENGINE_CHANGE], LOSS), restart)).toBe(true);
    expect(isWorse(restart, planWith([RESET], LOSS))).toBe(false);
    expect(isWorse(restart, restart)).toBe(false);
  });
});

test('an interrupted apply writes nothing', async () => {
  const controller = new AbortController();
  controller.abort();
  const { client, calls } = scripted({ plans: [planWith([ENGINE_CHANGE])] });
  await expect(applyDesired(input(client, { signal: controller.signal }))).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
  expect(calls).toEqual([]);
});
