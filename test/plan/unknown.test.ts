import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { assumeObserved } from '../../src/plan/assumed.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { settingsWith } from '../reconcile/worlds.ts';
import { planFor, requestFor, type Values } from './planning.ts';

const REASON = 'the driver does not answer';

/** A plan of a service that has not observed what runs. */
function blindPlan(live: Values, wanted: Values, rest: Parameters<typeof planFor>[2] = {}) {
  const observed = assumeObserved({
    seen: undefined,
    last: { settings: settingsWith(live), ...DEFAULT_BLOCKS },
    driver: SIMULATED_INFO,
    reason: REASON,
  });
  return planFor(live, requestFor(wanted), { observed, ...rest });
}

describe('a plan while the running state is unknown', () => {
  test('says so, and assumes that everything may run', async () => {
    const plan = await blindPlan({ 'kubernetes.enabled': false }, { 'containerEngine.name': 'containerd' });
    expect(plan.warnings[0]).toMatch(/^Running state unknown: the driver does not answer\./);
    expect(plan.blastRadius.map(({ what }) => what)).toEqual([
      'running state unknown: the driver does not answer',
      'stops the containers in moby (not counted)',
      'whatever is in moby stays with it and is not visible in containerd',
    ]);
    expect(plan.summary).toMatchObject({ nothingLost: false, restarts: 1, severity: 'restart' });
    expect(plan.summary.text).toBe('1 change, 1 restart, what is running is unknown');
  });

  test.each<[Values]>([
    [{ 'virtualMachine.memoryInGB': 6 }],
    [{ 'containerEngine.allowedImages.enabled': true }],
    [{ 'kubernetes.port': 7000 }],
    [{ 'kubernetes.enabled': false }],
    [{ 'application.adminAccess': true }],
  ])('that would restart a running backend costs a restart: %o', async (wanted) => {
    expect((await blindPlan({}, wanted)).changes).toMatchObject([{ severity: 'restart' }]);
  });

  test('a cluster version may be lower than the installed one', async () => {
    const plan = await blindPlan({}, { 'kubernetes.version': '1.30.2' });
    expect(plan.changes).toMatchObject([{ severity: 'reset' }]);
    expect(plan.blastRadius.at(-1)).toMatchObject({ lost: true, what: expect.stringContaining('should a newer one') });
    const known = await blindPlan({ 'kubernetes.version': '1.29.4' }, { 'kubernetes.version': '1.30.2' });
    expect(known.changes).toMatchObject([{ severity: 'restart' }]);
  });

  test('a change that is only stored is free, but nothing is guaranteed', async () => {
    const plan = await blindPlan({}, { 'application.debug': true });
    expect(plan.changes).toMatchObject([{ severity: 'none' }]);
    expect(plan.summary).toMatchObject({ restarts: 0, nothingLost: false });
    expect(plan.summary.text).not.toContain('nothing is lost');
  });

  test('without changes has no blast radius, but the same warning', async () => {
    const plan = await blindPlan({}, {});
    expect(plan).toMatchObject({ changes: [], blastRadius: [], warnings: [expect.stringContaining(REASON)] });
    expect(plan.summary.text).toBe('nothing to change, what is running is unknown');
  });

  test('guarantees nothing either after an observation that is too old', async () => {
    const wanted = requestFor({ 'application.debug': true });
    expect((await planFor({}, wanted)).summary).toMatchObject({ nothingLost: true });
    const plan = await planFor({}, wanted, { outdated: 'machine start is in progress' });
    expect(plan.warnings).toContainEqual(
      expect.stringMatching(/^What runs could not be looked at in time, because machine start is in progress: /),
    );
    expect(plan.summary).toMatchObject({
      nothingLost: false,
      text: '1 change, no restart, what is running is unknown',
    });
  });

  test('stopping interrupts whatever runs', async () => {
    const observed = assumeObserved({
      seen: undefined,
      last: { settings: settingsWith(), ...DEFAULT_BLOCKS },
      driver: SIMULATED_INFO,
      reason: REASON,
    });
    const plan = await planFor({}, requestFor({}, { state: 'stopped' }), { observed });
    expect(plan.changes).toMatchObject([{ path: 'state', severity: 'restart' }]);
    expect(plan.blastRadius).toContainEqual({ what: 'stops the workloads of the cluster', lost: false });
  });
});
