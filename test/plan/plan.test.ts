import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import { withoutFields } from '../../src/plan/leave-out.ts';
import { lockRecord } from '../../src/settings/locks.ts';
import { runningModel, seenOf, settingsWith } from '../reconcile/worlds.ts';
import { planFor, plannedFor, requestFor, TARGET, type Values } from './planning.ts';

const MUTED = 'diagnostics.mutedChecks';
const EXTENSIONS = 'application.extensions.installed';

/** moby runs with this many containers and images. */
function busy(running: number, images: number, live = settingsWith({ 'kubernetes.enabled': false })): Model {
  const model = runningModel(live);
  model.engines.moby.containers = Array.from({ length: running }, (_, index) => ({ name: `c${index}`, running: true }));
  model.engines.moby.images = Array.from({ length: images }, (_, index) => `i${index}`);
  return model;
}

describe('the document', () => {
  test('names the target, the basis and the generation', async () => {
    expect(await planFor({}, requestFor({}))).toEqual({
      kind: 'Plan',
      formatVersion: 1,
      tag: expect.stringMatching(/^sha256:/),
      target: TARGET,
      basis: 'service',
      generation: 7,
      changes: [],
      blastRadius: [],
      pendingRestart: [],
      userFiles: [],
      warnings: [],
      summary: {
        changes: 0,
        severity: 'none',
        restarts: 0,
        resets: 0,
        blocked: 0,
        nothingLost: true,
        text: 'nothing to change',
      },
    });
  });
});

describe('differences', () => {
  test('are computed on canonical values', async () => {
    const same = requestFor({
      'containerEngine.name': 'docker',
      'kubernetes.version': 'v1.30.2+k3s1',
      'experimental.virtualMachine.diskSize': '102400 MiB',
    });
    const { plan, deed } = await plannedFor({ 'kubernetes.version': '1.30.2' }, same);
    expect(plan.changes).toEqual([]);
    expect(deed.patch).toBeUndefined();
  });

  test('an empty version is satisfied by any', async () => {
    expect(
      (await planFor({ 'kubernetes.version': '1.30.2' }, requestFor({ 'kubernetes.version': '' }))).changes,
    ).toEqual([]);
  });

  test('treat arrays as whole values, and maps entry by entry', async () => {
    const request = requestFor({
      'containerEngine.allowedImages.patterns': ['b', 'a'],
      [MUTED]: { A: false, B: true, D: null },
    });
    const live = { 'containerEngine.allowedImages.patterns': ['a', 'b'], [MUTED]: { A: true, C: true, D: true } };
    const { plan, deed } = await plannedFor(live, request);
    expect(plan.changes.map(({ severity: _severity, reason: _reason, ...change }) => change)).toEqual([
      { path: 'containerEngine.allowedImages.patterns', action: 'update', before: ['a', 'b'], after: ['b', 'a'] },
      { path: MUTED, key: 'A', action: 'update', before: true, after: false },
      { path: MUTED, key: 'B', action: 'create', after: true },
      { path: MUTED, key: 'D', action: 'delete', before: true },
    ]);
    expect(deed.patch).toEqual({
      version: 19,
      containerEngine: { allowedImages: { patterns: ['b', 'a'] } },
      diagnostics: { mutedChecks: { A: false, B: true, C: true, D: null } },
    });
  });

  test('with prune, remove every other entry of a map, even one that is not mentioned', async () => {
    const live = { [MUTED]: { A: true, C: true } };
    const listed = requestFor({ [MUTED]: { A: true } }, { prune: [MUTED] });
    expect((await planFor(live, listed)).changes).toMatchObject([{ key: 'C', action: 'delete' }]);
    const unlisted = requestFor({}, { prune: [MUTED] });
    const { plan, deed } = await plannedFor(live, unlisted);
    expect(plan.changes).toMatchObject([{ key: 'A' }, { key: 'C' }]);
    expect(deed.patch).toMatchObject({
      diagnostics: { mutedChecks: { A: null, C: null } },
    });
  });

  test('do not include null for an entry that does not exist', async () => {
    expect((await planFor({}, requestFor({ [MUTED]: { A: null } }))).changes).toEqual([]);
  });

  test('a null outside a map is refused', async () => {
    await expect(planFor({}, requestFor({ 'kubernetes.port': null }))).rejects.toMatchObject({
      code: 'ERR_SETTINGS_INVALID',
    });
  });

  test('the patch has only what differs', async () => {
    const request = requestFor({ 'kubernetes.port': 7000, 'kubernetes.enabled': true, 'images.namespace': 'x' });
    const { deed } = await plannedFor({}, request);
    expect(deed.patch).toEqual({
      version: 19,
      kubernetes: { port: 7000 },
      images: { namespace: 'x' },
    });
  });

  test('the patch has nothing that is left out', async () => {
    const wider = requestFor({ 'kubernetes.port': 7000, 'images.namespace': 'x' });
    const { deed } = await plannedFor({}, withoutFields(wider, [{ path: 'images.namespace' }]));
    expect(deed.patch).toEqual({ version: 19, kubernetes: { port: 7000 } });
  });

  test('secrets are masked on both sides, but still sent', async () => {
    const password = 'experimental.virtualMachine.proxy.password';
    const request = requestFor({ [password]: 'new secret' });
    const { plan, deed } = await plannedFor({ [password]: 'old secret' }, request);
    expect(JSON.stringify(plan)).not.toContain('secret');
    expect(plan.changes).toMatchObject([{ before: { sensitive: true }, after: { sensitive: true } }]);
    expect(JSON.stringify(deed.patch)).toContain('new secret');
  });
});

describe('actions', () => {
  test('data that is destroyed and created anew counts as replaced', async () => {
    const request = requestFor({
      'containerEngine.name': 'containerd',
      'kubernetes.version': '1.30.2',
      'kubernetes.port': 7000,
    });
    expect((await planFor({}, request)).changes.map(({ path, action }) => [path, action])).toEqual([
      ['containerEngine.name', 'replace'],
      ['kubernetes.version', 'replace'],
      ['kubernetes.port', 'update'],
    ]);
  });
});

describe('blocked changes', () => {
  const locks = lockRecord({
    version: 19,
    kubernetes: { version: '1.30.2' },
    diagnostics: { mutedChecks: {} },
  });

  test('a locked field is reported with its lock, and the rest continues', async () => {
    const request = requestFor({ 'kubernetes.version': '1.29.4', 'kubernetes.port': 7000 });
    const live = { 'kubernetes.version': '1.30.2' };
    const { plan, deed } = await plannedFor(live, request, { locks, lockedBy: '/etc/rancher-desktop/locked.json' });
    expect(plan.changes[0]).toMatchObject({
      severity: 'none',
      blocked: {
        by: 'lock',
        message: '"kubernetes.version" is locked by /etc/rancher-desktop/locked.json; ask your administrator.',
      },
    });
    expect(plan.summary).toMatchObject({ changes: 2, blocked: 1, resets: 0, restarts: 1, severity: 'restart' });
    expect(plan.summary.text).toBe('2 changes, 1 blocked, 1 restart, no data is deleted');
    expect(deed.patch).toEqual({ version: 19, kubernetes: { port: 7000 } });
  });

  test('an equal value and the version are allowed', async () => {
    const request = requestFor({ 'kubernetes.version': 'v1.30.2', version: 12 });
    expect((await planFor({ 'kubernetes.version': '1.30.2' }, request, { locks })).changes).toEqual([]);
  });

  test('a map is locked as a whole', async () => {
    const plan = await planFor({}, requestFor({ [MUTED]: { A: true } }), { locks });
    expect(plan.changes).toMatchObject([{ key: 'A', blocked: { by: 'lock' } }]);
    expect(plan.summary.text).toBe('1 change, 1 blocked, no restart, nothing is lost');
  });

  test('the driver refuses what it does not support, except values that require nothing', async () => {
    const support = {
      ...SIMULATED_INFO.support,
      'kubernetes.enabled': { level: 'unsupported' as const, reason: 'it has no cluster', accepts: [false] },
    };
    const driver = { ...SIMULATED_INFO, support, hasCluster: false };
    const model = runningModel(settingsWith({ 'kubernetes.enabled': false }));
    const off = await planFor({}, requestFor({ 'kubernetes.enabled': false }), { driver, model });
    expect(off.changes).toMatchObject([{ severity: 'none' }]);
    expect(off.changes[0]?.blocked).toBeUndefined();
    const on = await planFor({ 'kubernetes.enabled': false }, requestFor({ 'kubernetes.enabled': true }), {
      driver,
      model,
    });
    expect(on.changes[0]?.blocked).toEqual({
      by: 'unsupported',
      message: '"kubernetes.enabled" cannot be changed with the simulated driver: it has no cluster.',
    });
    expect((await planFor({}, requestFor({ 'kubernetes.enabled': true }), { driver, model })).changes).toEqual([]);
  });

  test("a number above the driver's maximum is refused, and no other", async () => {
    const reason = 'this computer has 24 GiB of memory';
    const memory = { 'virtualMachine.memoryInGB': { level: 'enforced', most: 24, reason } as const };
    const driver = { ...SIMULATED_INFO, support: { ...SIMULATED_INFO.support, ...memory } };
    const blocked = async (gib: number) =>
      (await planFor({}, requestFor({ 'virtualMachine.memoryInGB': gib }), { driver })).changes[0]?.blocked;
    expect(await blocked(24)).toBeUndefined();
    expect(await blocked(25)).toEqual({
      by: 'unsupported',
      message: `"virtualMachine.memoryInGB" cannot be changed with the simulated driver: ${reason}.`,
    });
  });

  test("a size above the driver's maximum is refused, and no other", async () => {
    const reason = 'a disk has 8 TiB at most';
    const path = 'experimental.virtualMachine.diskSize';
    const disk = { [path]: { level: 'enforced', most: 8 * 2 ** 40, reason } as const };
    const driver = { ...SIMULATED_INFO, support: { ...SIMULATED_INFO.support, ...disk } };
    const blocked = async (size: string) =>
      (await planFor({}, requestFor({ [path]: size }), { driver })).changes[0]?.blocked;
    expect(await blocked('8TiB')).toBeUndefined();
    expect(await blocked('8 tb')).toBeUndefined();
    const message = `"${path}" cannot be changed with the simulated driver: ${reason}.`;
    for (const size of ['8193 GiB', '9tb', '100TiB', '1e']) {
      expect(await blocked(size)).toEqual({ by: 'unsupported', message });
    }
  });

  test('extensions cannot be changed through settings', async () => {
    const request = requestFor({ [EXTENSIONS]: { 'example/tool': '1.0' } });
    const { plan, deed } = await plannedFor({}, request);
    expect(plan.changes).toMatchObject([{ key: 'example/tool', action: 'create', severity: 'live' }]);
    expect(plan.changes[0]?.blocked).toBeUndefined();
    expect(deed.patch).toBeUndefined();
  });
});

describe('what a plan interrupts, hides and loses', () => {
  const OFF = { 'kubernetes.enabled': false };

  test('a switch stops containers and hides the data of the other engine', async () => {
    const plan = await planFor(OFF, requestFor({ 'containerEngine.name': 'containerd' }), { model: busy(7, 12) });
    expect(plan.blastRadius).toEqual([
      { what: 'stops 7 containers: c0, c1, c2, c3, c4 and 2 more', lost: false },
      { what: '12 images and 7 containers stay with moby and are not visible in containerd', lost: false },
    ]);
    expect(plan.summary.text).toBe('1 change, 1 restart, no data is deleted');
  });

  test('one of each is in the singular', async () => {
    const model = busy(1, 0);
    const plan = await planFor(OFF, requestFor({ 'containerEngine.name': 'containerd' }), { model });
    expect(plan.blastRadius.map(({ what }) => what)).toEqual([
      'stops 1 container: c0',
      '1 container stays with moby and is not visible in containerd',
    ]);
  });

  const RETURNS: Record<string, boolean> = { back: true, down: false };

  test.each([
    ['web down', 'stops 1 container: web; it stays down'],
    ['web back', 'stops 1 container: web; it starts again by itself'],
    ['web back db back', 'stops 2 containers: web and db; all start again by themselves'],
    [
      'web back db back cache down',
      'stops 3 containers: web, db and cache; web and db start again by themselves, cache stays down',
    ],
    [
      'web back db down job unsure',
      'stops 3 containers: web, db and job; web starts again by itself, db stays down, job may start again',
    ],
    ['job unsure', 'stops 1 container: job; it may start again'],
    ['dns pod api pod web down', 'stops 1 container: web, and 2 containers of the cluster; it stays down'],
    ['dns pod', 'stops 1 container of the cluster'],
    [
      'a down b down c down d down e down f down g back',
      'stops 7 containers: a, b, c, d, e and 2 more; g starts again by itself, a, b, c, d, e and 1 more stay down',
    ],
  ])('a restart names what it stops, and what it then starts again: %s', async (containers, what) => {
    const observed = await running(containers);
    const plan = await planFor(OFF, requestFor({ 'containerEngine.allowedImages.enabled': true }), { observed });
    expect(plan.blastRadius.map((item) => item.what)).toEqual([what]);
  });

  test('what stays off starts nothing again, and neither does what is hidden', async () => {
    const observed = await running('web back cache down');
    const first = async (values: Values, rest = {}) =>
      (await planFor(OFF, requestFor(values, rest), { observed })).blastRadius[0]?.what;
    const later = 'stops 2 containers: web and cache; web starts again when moby does';
    expect(await first({}, { state: 'stopped' })).toBe(later);
    expect(await first({ 'containerEngine.name': 'containerd' })).toBe(later);
    expect(await first({ 'containerEngine.mobyStorageDriver': 'snapshotter' })).toBe(
      'stops 2 containers: web and cache',
    );
  });

  /** What dockerd reports about pairs of a name and its fate. */
  async function running(containers: string) {
    const observed = await seenOf(runningModel(settingsWith(OFF)));
    const { moby } = observed.engines;
    if (moby.state !== 'running') throw new Error('moby runs in this model');
    const found = [...containers.matchAll(/(\w+) (\w+)/g)].map(([, name = '', fate = '']) => ({
      name,
      ...(fate in RETURNS ? { returns: RETURNS[fate] === true } : {}),
      ...(fate === 'pod' ? { pod: true as const } : {}),
    }));
    moby.workload = { runningContainers: found.length, running: found };
    return observed;
  }

  test('a restart of an idle engine loses nothing', async () => {
    const plan = await planFor(OFF, requestFor({ 'containerEngine.allowedImages.enabled': true }));
    expect(plan.blastRadius).toEqual([]);
    expect(plan.summary).toMatchObject({ nothingLost: true, text: '1 change, 1 restart, nothing is lost' });
  });

  test('a restart of the cluster leaves containers alone', async () => {
    const plan = await planFor({}, requestFor({ 'kubernetes.port': 7000 }), { model: busy(3, 3, settingsWith()) });
    expect(plan.blastRadius).toEqual([
      { what: 'interrupts the workloads of the cluster while it restarts', lost: false },
    ]);
    expect(plan.summary).toMatchObject({ nothingLost: false, text: '1 change, 1 restart, no data is deleted' });
  });

  test('a reset names what is lost', async () => {
    const plan = await planFor({}, requestFor({ 'kubernetes.version': '1.30.2' }));
    expect(plan.blastRadius).toEqual([
      { what: 'interrupts the workloads of the cluster while it restarts', lost: false },
      {
        what: 'deletes the workloads and data of the cluster (version 1.33.4)',
        lost: true,
        consent: 'kubernetes-reset',
      },
    ]);
    expect(plan.summary).toMatchObject({
      nothingLost: false,
      text: '1 change, 1 restart, 1 reset, cluster data is lost',
    });
  });

  test('unknown container counts are not zero', async () => {
    const observed = await seenOf(runningModel(settingsWith(OFF)));
    const { moby } = observed.engines;
    if (moby.state === 'running') moby.workload = {};
    const plan = await planFor(OFF, requestFor({ 'containerEngine.allowedImages.enabled': true }), { observed });
    expect(plan.blastRadius).toEqual([{ what: 'stops the containers in moby (not counted)', lost: false }]);
  });

  test('an unresponsive engine is not ignored', async () => {
    const model = runningModel(settingsWith(OFF));
    model.engines.moby = { ...model.engines.moby, process: { state: 'hung' } };
    const stops = 'stops an unknown number of containers in moby: the engine does not answer';
    const stop = await planFor(OFF, requestFor({}, { state: 'stopped' }), { model });
    expect(stop.blastRadius).toEqual([{ what: stops, lost: false }]);
    expect(stop.summary.text).not.toContain('nothing is lost');
    const change = await planFor(OFF, requestFor({ 'containerEngine.name': 'containerd' }), { model });
    expect(change.blastRadius.map(({ what }) => what)).toEqual([
      stops,
      'whatever is in moby stays with it and is not visible in containerd',
    ]);
  });

  test('an unresponsive cluster is not ignored', async () => {
    const model: Model = {
      ...runningModel(settingsWith()),
      cluster: { state: 'hung', installedVersion: '1.33.4', workloads: [] },
    };
    const plan = await planFor({}, requestFor({}, { state: 'stopped' }), { model });
    expect(plan.blastRadius.map(({ what }) => what)).toEqual([
      'stops the workloads of the cluster, which does not answer',
    ]);
  });

  test('a restart that is already due counts, with what it interrupts', async () => {
    const plan = await planFor({ ...OFF, 'containerEngine.name': 'containerd' }, requestFor({}), { model: busy(2, 2) });
    expect(plan.changes).toMatchObject([{ path: 'engine', before: 'moby', after: 'containerd', severity: 'restart' }]);
    expect(plan.blastRadius.map(({ what }) => what)).toEqual([
      'stops 2 containers: c0 and c1',
      '2 images and 2 containers stay with moby and are not visible in containerd',
    ]);
    expect(plan.summary.text).toBe('1 change, 1 restart, no data is deleted');
  });
});

describe('power', () => {
  test('stopping interrupts what runs', async () => {
    const plan = await planFor({}, requestFor({}, { state: 'stopped' }), { model: busy(2, 1, settingsWith()) });
    expect(plan.changes).toMatchObject([{ path: 'state', before: 'started', after: 'stopped', severity: 'restart' }]);
    expect(plan.blastRadius.map(({ what }) => what)).toEqual([
      'stops 2 containers: c0 and c1',
      'stops the workloads of the cluster',
    ]);
    expect(plan.summary).toMatchObject({ restarts: 0, text: '1 change, stops the backend, no data is deleted' });
  });

  test('starting interrupts nothing', async () => {
    const request = requestFor({ 'kubernetes.port': 7000 }, { state: 'started' });
    const plan = await planFor({}, request, { model: emptyModel(), power: 'stopped' });
    expect(plan.changes.map(({ path, severity }) => [path, severity])).toEqual([
      ['kubernetes.port', 'none'],
      ['state', 'live'],
    ]);
    expect(plan.summary.text).toBe('2 changes, starts the backend, nothing is lost');
  });

  test('the same and an unmanaged power state are no change', async () => {
    expect((await planFor({}, requestFor({}, { state: 'started' }))).changes).toEqual([]);
    const off = { power: 'stopped', model: emptyModel() } as const;
    expect((await planFor({}, requestFor({}), off)).changes).toEqual([]);
  });
});

test('several changes cost one restart', async () => {
  const request = requestFor({
    'containerEngine.allowedImages.enabled': true,
    'virtualMachine.memoryInGB': 8,
    'application.debug': true,
  });
  const plan = await planFor({ 'kubernetes.enabled': false }, request);
  expect(plan.summary.text).toBe('3 changes, 1 restart, nothing is lost');
});

test('a change that is only stored restarts nothing', async () => {
  const plan = await planFor({}, requestFor({ 'application.debug': true }));
  expect(plan.summary.text).toBe('1 change, no restart, nothing is lost');
});

test('thousands of entries are planned and sent at once', async () => {
  const entries = Object.fromEntries(Array.from({ length: 16_000 }, (_, index) => [`CHECK_${index}`, true]));
  const request = requestFor({ [MUTED]: entries });
  const { plan, deed } = await plannedFor({}, request);
  expect(plan.changes).toHaveLength(16_000);
  expect(deed.patch).toEqual({ version: 19, diagnostics: { mutedChecks: entries } });
});
