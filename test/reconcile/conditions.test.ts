import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { DriverInfo } from '../../src/drivers/driver.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import { RdError } from '../../src/errors.ts';
import { goalOf } from '../../src/plan/backend.ts';
import { consequencesOf } from '../../src/plan/consequences.ts';
import { minutesText } from '../../src/reconcile/attempts.ts';
import { CONDITION_REASONS, conditionsOf } from '../../src/reconcile/conditions.ts';
import { STEP_LIMITS_MS } from '../../src/reconcile/perform.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { runningModel, seenOf, settingsWith } from './worlds.ts';

const LIVE = settingsWith();

async function conditionsIn(
  model: Model,
  settings: Settings,
  power: 'started' | 'stopped',
  driver: DriverInfo = SIMULATED_INFO,
) {
  const goal = goalOf({ settings, ...DEFAULT_BLOCKS, power }, driver);
  const consequences = consequencesOf(goal, await seenOf(model), driver);
  const input = { consequences, hasCluster: driver.hasCluster, failure: undefined, fresh: true };
  return conditionsOf({ ...input, generation: 1, now: '2030-01-01T00:00:00.000Z' }, []);
}

test('the page names every condition and reason', () => {
  const page = readFileSync('docs/conditions.md', 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \| `(\w+)` \| (\w+) \| (\w+) \| (.+) \|$/gm)].map((match) =>
    match.slice(1, 6),
  );
  const code = Object.entries(CONDITION_REASONS).flatMap(([type, reasons]) =>
    Object.entries(reasons).map(([reason, { status, concern, meaning }]) => [type, reason, status, concern, meaning]),
  );
  expect(rows).toEqual(code);
  expect(code.length).toBeGreaterThan(30);
});

test('the page names the time limit of every step', () => {
  const page = readFileSync('docs/conditions.md', 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+ \w+)` \| (\d+ minutes) \|$/gm)].map((match) => match.slice(1, 3));
  expect(rows).toEqual(Object.entries(STEP_LIMITS_MS).map(([name, ms]) => [name, minutesText(ms)]));
});

test.each([
  ['the disk is full', 6, true, 'the disk is full (6 attempts). Make room.'],
  ['QEMU ended.', 1, true, 'QEMU ended. Make room.'],
  ['the disk is full', 2, false, 'the disk is full (2 attempts). Retrying.'],
])('failure %j ends its sentence before the following text', async (message, attempts, terminal, expected) => {
  const goal = goalOf({ settings: LIVE, ...DEFAULT_BLOCKS, power: 'started' }, SIMULATED_INFO);
  const error = new RdError('ERR_DRIVER_FAILED', message, { advice: 'Make room.' });
  const failure = { what: 'machine start', error, attempts, terminal };
  const consequences = consequencesOf(goal, await seenOf(emptyModel()), SIMULATED_INFO);
  const input = { consequences, hasCluster: true, failure, fresh: true };
  const [machine] = conditionsOf({ ...input, generation: 1, now: '2030-01-01T00:00:00.000Z' }, []);
  expect(machine).toMatchObject({ type: 'MachineReady', reason: 'StepFailed', message: expected });
});

test('a condition that is met needs no action', () => {
  const all = Object.values(CONDITION_REASONS).flatMap((reasons) => Object.values(reasons));
  expect(all.filter(({ status, concern }) => status === 'True' && concern !== 'none')).toEqual([]);
});

describe('a converged desktop shows no alarm', () => {
  const off = settingsWith({ 'kubernetes.enabled': false });
  test.each<[string, Model, Settings, 'started' | 'stopped', DriverInfo]>([
    ['with everything', runningModel(LIVE), LIVE, 'started', SIMULATED_INFO],
    ['stopped', emptyModel(), LIVE, 'stopped', SIMULATED_INFO],
    ['with the cluster switched off', runningModel(off), off, 'started', SIMULATED_INFO],
    ['on a driver without cluster', runningModel(off), LIVE, 'started', { ...SIMULATED_INFO, hasCluster: false }],
  ])('%s', async (_what, model, settings, power, driver) => {
    const conditions = await conditionsIn(model, settings, power, driver);
    expect(conditions.map(({ concern }) => concern)).toEqual(['none', 'none', 'none', 'none']);
    expect(conditions.at(-1)?.reason).toBe('UpToDate');
  });
});

const hung = () => {
  const model = runningModel(LIVE);
  model.engines.moby.process = { state: 'hung' };
  return model;
};

describe('reasons', () => {
  test.each<[string, Model, Settings, 'started' | 'stopped', string[]]>([
    ['as desired', runningModel(LIVE), LIVE, 'started', ['Running', 'Running', 'Running', 'UpToDate']],
    ['off, as desired', emptyModel(), LIVE, 'stopped', ['PoweredOff', 'PoweredOff', 'PoweredOff', 'UpToDate']],
    ['to be started', emptyModel(), LIVE, 'started', ['Starting', 'WaitingForMachine', 'WaitingForEngine', 'Working']],
    ['to be stopped', runningModel(LIVE), LIVE, 'stopped', ['Stopping', 'Stopping', 'Stopping', 'Working']],
    [
      'another engine',
      runningModel(LIVE),
      settingsWith({ 'containerEngine.name': 'containerd' }),
      'started',
      ['Running', 'Switching', 'Restarting', 'Working'],
    ],
    [
      'another machine',
      runningModel(LIVE),
      settingsWith({ 'virtualMachine.numberCPUs': 5 }),
      'started',
      ['Restarting', 'Restarting', 'Restarting', 'Working'],
    ],
    [
      'cluster switched off',
      runningModel(LIVE),
      settingsWith({ 'kubernetes.enabled': false }),
      'started',
      ['Running', 'Running', 'Stopping', 'Working'],
    ],
    [
      'cluster to be reset',
      {
        ...runningModel(LIVE),
        cluster: { state: 'stopped', installedVersion: '1.33.4', workloads: [] },
      },
      settingsWith({ 'kubernetes.version': '1.30.2' }),
      'started',
      ['Running', 'Running', 'Resetting', 'Working'],
    ],
    ['an engine that hangs', hung(), LIVE, 'started', ['Running', 'Unresponsive', 'Restarting', 'Working']],
    [
      'a cluster that hangs',
      { ...runningModel(LIVE), cluster: { state: 'hung', installedVersion: '1.33.4', workloads: [] } },
      LIVE,
      'started',
      ['Running', 'Running', 'Unresponsive', 'Working'],
    ],
    [
      'a broken machine',
      { ...emptyModel(), machine: { state: 'broken', reason: 'X', message: 'x' } },
      LIVE,
      'started',
      ['Broken', 'WaitingForMachine', 'WaitingForEngine', 'Working'],
    ],
  ])('%s', async (_what, model, settings, power, expected) => {
    expect((await conditionsIn(model, settings, power)).map(({ reason }) => reason)).toEqual(expected);
  });
});
