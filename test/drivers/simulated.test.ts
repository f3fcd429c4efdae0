import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SIMULATED_INFO, simulated } from '../../src/drivers/machines/simulated/index.ts';
import { listedFaults, simulationOptions } from '../../src/drivers/machines/simulated/options.ts';
import { RdError } from '../../src/errors.ts';
import { clusterSpec, engineSpec, machineSpec } from '../../src/plan/backend.ts';
import { CLUSTER_MEMBERS, supportOf } from '../../src/plan/drift.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { MANAGED_FIELDS } from '../../src/settings/fields.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { runningModel, settingsWith } from '../reconcile/worlds.ts';

const never = new AbortController().signal;
const SETTINGS = settingsWith();
const MACHINE = machineSpec(SETTINGS, DEFAULT_BLOCKS);
const MOBY = engineSpec(SETTINGS, DEFAULT_BLOCKS);
const CONTAINERD = { ...MOBY, name: 'containerd' as const };
const CLUSTER = { ...clusterSpec(SETTINGS, DEFAULT_BLOCKS), version: '1.30.2' };

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rdctl-simulated-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

function open(directory: string, env: Record<string, string> = {}) {
  return simulated.open({
    directory,
    logs: directory,
    log: () => undefined,
    now: () => 1_000,
    env: { RDCTL_SIMULATED_LATENCY_MS: '0', ...env },
  });
}

describe('the machine file', () => {
  test('survives a service restart, with images, cluster and all', async () => {
    const directory = folder();
    const first = await open(directory, { RDCTL_SIMULATED_WORKLOAD: 'images=5, containers=2' });
    await first.machine.perform({ do: 'start', spec: MACHINE }, never);
    await first.engines.moby.perform({ do: 'start', spec: MOBY }, never);
    await first.cluster?.perform({ do: 'start', spec: CLUSTER }, never);
    const second = await open(directory);
    expect(await second.machine.observe(never)).toEqual({ state: 'on', spec: MACHINE });
    expect(await second.engines.moby.observe(never)).toMatchObject({
      state: 'running',
      endpoint: 'simulated:moby',
      workload: { images: 5, containers: 2, runningContainers: 2 },
    });
    expect(await second.cluster?.observe(never)).toMatchObject({
      state: 'running',
      installedVersion: '1.30.2',
      ready: true,
    });
    const log: unknown = JSON.parse(readFileSync(join(directory, 'machine.json'), 'utf8')).log;
    expect(log).toMatchObject([
      { part: 'machine' },
      { part: 'moby' },
      { part: 'cluster', do: 'start', outcome: 'done' },
    ]);
    expect(statSync(join(directory, 'machine.json')).mode & 0o777).toBe(0o600);
  });

  test.each(['{', '[]', '{"format":2}', '{"format":1,"log":[],"machine":{},"engines":{},"cluster":{}}', 'null'])(
    'that holds %s is an error with its path, not a new machine',
    async (text) => {
      const directory = folder();
      writeFileSync(join(directory, 'machine.json'), text);
      const driver = await open(directory);
      const failure = expect.objectContaining({
        code: text.includes('2') ? 'ERR_OTHER_VERSION' : 'ERR_DRIVER_TERMINAL',
        message: expect.stringContaining(join(directory, 'machine.json')),
      });
      await expect(driver.machine.observe(never)).rejects.toEqual(failure);
      await expect(driver.machine.perform({ do: 'stop' }, never)).rejects.toEqual(failure);
      expect(readFileSync(join(directory, 'machine.json'), 'utf8')).toBe(text);
    },
  );
});

describe('the model', () => {
  test('refuses a second engine', async () => {
    const { driver } = memorySimulation({ model: runningModel(settingsWith({ 'kubernetes.enabled': false })) });
    await expect(driver.engines.containerd.perform({ do: 'start', spec: CONTAINERD }, never)).rejects.toThrow(
      'moby is still there',
    );
  });

  test('refuses an engine without a machine and a cluster without an engine', async () => {
    const { driver } = memorySimulation();
    await expect(driver.engines.moby.perform({ do: 'start', spec: MOBY }, never)).rejects.toThrow(
      'the machine does not run',
    );
    await expect(driver.cluster?.perform({ do: 'start', spec: CLUSTER }, never)).rejects.toThrow('moby does not run');
  });

  test('refuses to take the engine away from a cluster', async () => {
    const { driver } = memorySimulation({ model: runningModel(SETTINGS) });
    await expect(driver.engines.moby.perform({ do: 'stop' }, never)).rejects.toThrow('a cluster runs on moby');
  });

  test('refuses a lower cluster version until it is reset, which removes the workloads', async () => {
    const { driver, model } = memorySimulation({ model: runningModel(SETTINGS, '1.31.2') });
    await driver.cluster?.perform({ do: 'stop' }, never);
    const lower = { do: 'start' as const, spec: CLUSTER };
    await expect(driver.cluster?.perform(lower, never)).rejects.toMatchObject({ code: 'ERR_DRIVER_TERMINAL' });
    expect(model().cluster).toMatchObject({ workloads: ['default/web'] });
    await driver.cluster?.perform({ do: 'reset' }, never);
    expect(model().cluster).toEqual({ state: 'absent' });
    await driver.cluster?.perform(lower, never);
    expect(model().cluster).not.toMatchObject({ workloads: ['default/web'] });
  });

  test('refuses an unknown version, and names those it offers', async () => {
    const { driver } = memorySimulation({ model: runningModel(settingsWith({ 'kubernetes.enabled': false })) });
    const unknown = { ...CLUSTER, version: '1.2.3' };
    await expect(driver.cluster?.perform({ do: 'start', spec: unknown }, never)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      advice: expect.stringContaining('1.30.2'),
    });
  });

  test('keeps the data of each engine, and stops its containers with it', async () => {
    const { driver, model } = memorySimulation({ firstWorkload: { images: 1, containers: 1 } });
    await driver.machine.perform({ do: 'start', spec: MACHINE }, never);
    await driver.engines.moby.perform({ do: 'start', spec: MOBY }, never);
    await driver.engines.moby.perform({ do: 'stop' }, never);
    await driver.engines.containerd.perform({ do: 'start', spec: CONTAINERD }, never);
    await driver.engines.containerd.perform({ do: 'stop' }, never);
    await driver.engines.moby.perform({ do: 'start', spec: MOBY }, never);
    expect(model().engines.moby).toMatchObject({
      images: ['simulated/image-1:latest'],
      containers: [{ running: false }],
    });
  });

  test('a machine that stops takes everything down', async () => {
    const { driver, model } = memorySimulation({ model: runningModel(SETTINGS) });
    await driver.machine.perform({ do: 'stop' }, never);
    expect(model()).toMatchObject({
      machine: { state: 'off' },
      engines: { moby: { process: { state: 'stopped' } } },
      cluster: { state: 'stopped' },
    });
  });

  test('a canceled step changes nothing', async () => {
    const { driver, model } = memorySimulation({
      faults: listedFaults([{ part: 'machine', step: 'start', effect: 'hang' }]),
    });
    const abort = new AbortController();
    const step = driver.machine.perform({ do: 'start', spec: MACHINE }, abort.signal);
    abort.abort();
    await expect(step).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    expect(model().machine).toEqual({ state: 'absent' });
  });

  test('a fault after the work leaves the work done', async () => {
    const fault = { kind: 'error' as const, when: 'after' as const, error: new RdError('ERR_DRIVER_FAILED', 'late') };
    const { driver, model } = memorySimulation({
      faults: (_part, step) => (step === 'start' ? fault : undefined),
    });
    await expect(driver.machine.perform({ do: 'start', spec: MACHINE }, never)).rejects.toThrow('late');
    expect(model().machine.state).toBe('on');
    expect(model().log).toMatchObject([{ outcome: 'failed' }]);
  });
});

describe('the environment', () => {
  test('lists faults that occur a given number of times', async () => {
    const { faults } = simulationOptions({ RDCTL_SIMULATED_FAULTS: 'engine.start:1, moby.stop:terminal' });
    const strike = listedFaults(faults);
    expect(strike('moby', 'start')).toMatchObject({ error: { code: 'ERR_DRIVER_FAILED' } });
    expect(strike('moby', 'start')).toBeUndefined();
    expect(strike('moby', 'stop')).toMatchObject({ error: { code: 'ERR_DRIVER_TERMINAL' } });
    expect(strike('containerd', 'stop')).toBeUndefined();
  });

  test.each([
    ['RDCTL_SIMULATED_FAULTS', 'engine.start'],
    ['RDCTL_SIMULATED_FAULTS', 'engine.fly:2'],
    ['RDCTL_SIMULATED_FAULTS', 'disk.start:2'],
    ['RDCTL_SIMULATED_LATENCY_MS', '-1'],
    ['RDCTL_SIMULATED_LATENCY_MS', 'soon'],
    ['RDCTL_SIMULATED_WORKLOAD', 'pods=3'],
  ])('refuses %s=%s by name', async (variable, value) => {
    expect(() => simulationOptions({ [variable]: value })).toThrow(`${variable} has an invalid part`);
    expect(await simulated.probe({ [variable]: value })).toMatchObject({ usable: false });
    await expect(open(folder(), { [variable]: value })).rejects.toMatchObject({ code: 'ERR_USAGE' });
  });

  test('needs nothing else, and is never the default', async () => {
    expect(await simulated.probe({})).toMatchObject({ usable: true });
    expect(simulated).toMatchObject({ automatic: false, simulated: true });
  });
});

test('the support matrix covers every setting, and live fields are ones that a part can adjust', () => {
  expect(Object.keys(SIMULATED_INFO.support).sort()).toEqual(MANAGED_FIELDS.map(({ path }) => path).sort());
  for (const path of SIMULATED_INFO.liveFields) {
    expect(supportOf(SIMULATED_INFO, path).level).toBe('enforced');
    expect(CLUSTER_MEMBERS.some((member) => member.path === path)).toBe(false);
  }
});
