import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  ClusterDriver,
  Driver,
  DriverFactory,
  EngineName,
  EngineSpec,
  EngineStatus,
  MachineSpec,
  ServicePort,
} from '../../src/drivers/driver.ts';
import { copyTree } from '../../src/features/snapshots/tree.ts';
import { checkImages, type SampleImage } from './image-suite.ts';

/** A driver under test, with what the suite needs to look behind it. */
export interface DriverSubject {
  factory: DriverFactory;
  env?: Record<string, string | undefined>;
  /** Fills the new directory of a driver with what shortens its first start without being distinguishable from a new one. */
  prepare?(directory: string): Promise<void>;
  /** Optional powers of the driver: reporting what a running machine can take without a stop, and live copies. */
  powers?: { room?: true; liveCopy?: true };
  /** Ends the engine as a crash would. */
  crash(driver: Driver, engine: EngineName, directory: string): Promise<void>;
  /** Things that live in an engine and must survive its stops. */
  data: {
    put(driver: Driver, engine: EngineName, directory: string): Promise<void>;
    has(driver: Driver, engine: EngineName, directory: string): Promise<boolean>;
  };
  /** Everything of the instance outside its directory; empty once the machine is stopped. */
  traces(directory: string): Promise<string[]>;
  /** For drivers whose cluster can be reached: a service there that answers HTTP. */
  cluster?: { web: ServicePort; webName: string };
  /** Two images in the registries of the engines, by their full names. */
  registryImages(): Promise<readonly [string, string]>;
  /** An image that the engines can pull. */
  sampleImage(): Promise<SampleImage>;
  /** An image whose command runs forever. */
  companionImage(): Promise<string>;
  /** Damages the running machine so that `adjust` can repair it; absent where nothing can go missing. */
  damage?(directory: string): Promise<void>;
}

export const MACHINE: MachineSpec = {
  memoryGiB: 2,
  cpus: 2,
  diskBytes: 10 * 2 ** 30,
  type: 'qemu',
  useRosetta: false,
  mount: {
    type: 'reverse-sshfs',
    securityModel: 'none',
    protocolVersion: '9p2000.L',
    msizeInKib: 128,
    cacheMode: 'mmap',
  },
  sshPortForwarder: true,
  adminAccess: false,
  mounts: {},
  hostPorts: [],
  pauseAfterMinutes: 0,
};

export function engineSpec(name: EngineName, storageDriver: EngineSpec['storageDriver'] = 'auto'): EngineSpec {
  return { name, storageDriver, webAssembly: false, allowedImages: { enabled: false, patterns: [] } };
}

/** What `src/drivers/driver.ts` promises for every driver. */
export function driverSuite(subject: DriverSubject): void {
  const { factory } = subject;
  const never = new AbortController().signal;
  let directory: string;
  let driver: Driver;

  function open(): Promise<Driver> {
    return factory.open({
      directory: join(directory, 'd'),
      logs: join(directory, 'logs'),
      log: () => undefined,
      now: () => Date.now(),
      env: { ...process.env, ...subject.env },
    });
  }

  const machine = (step: 'start' | 'stop' | 'adjust', signal = never) =>
    driver.machine.perform(step === 'stop' ? { do: step } : { do: step, spec: MACHINE }, signal);
  const start = (spec: EngineSpec, signal = never) => driver.engines[spec.name].perform({ do: 'start', spec }, signal);
  const stop = (name: EngineName) => driver.engines[name].perform({ do: 'stop' }, never);
  const engine = (name: EngineName): Promise<EngineStatus> => driver.engines[name].observe(never);

  /** On, with this spec, and complete; anything else a machine reports is its own business. */
  async function expectOn(spec: MachineSpec): Promise<void> {
    const seen = await driver.machine.observe(never);
    expect(seen).toMatchObject({ state: 'on', spec });
    expect(seen).not.toHaveProperty('repair');
  }

  describe(`contract of the ${factory.name} driver`, () => {
    beforeEach(async () => {
      directory = mkdtempSync(join(tmpdir(), 'rd-'));
      for (const name of ['d', 'logs']) mkdirSync(join(directory, name), { mode: 0o700 });
      await subject.prepare?.(join(directory, 'd'));
      driver = await open();
    });
    afterEach(async () => {
      for (const name of ['moby', 'containerd'] as const) await stop(name);
      await machine('stop');
      await driver.release?.();
      rmSync(directory, { recursive: true });
    });

    test('goes from nothing to a running engine and back, and leaves nothing outside its directory', async () => {
      const before = await subject.traces(join(directory, 'd'));
      expect(before).toEqual([]);
      expect(await driver.machine.observe(never)).toEqual({ state: 'absent' });
      expect(await engine('moby')).toEqual({ state: 'stopped' });

      await machine('start');
      await expectOn(MACHINE);
      await start(engineSpec('moby'));
      const running = await engine('moby');
      expect(running).toMatchObject({ state: 'running', spec: engineSpec('moby') });
      if (running.state === 'running') {
        expect(running.endpoint).not.toBe('');
        expect(running.version).not.toBe('');
      }
      expect(await engine('containerd')).toEqual({ state: 'stopped' });

      await stop('moby');
      expect(await engine('moby')).toEqual({ state: 'stopped' });
      await machine('stop');
      expect(await driver.machine.observe(never)).toEqual({ state: 'off' });
      expect(await subject.traces(join(directory, 'd'))).toEqual([]);
    });

    test('performs every step twice without harm', async () => {
      await machine('stop');
      await stop('moby');
      for (let round = 0; round < 2; round += 1) await machine('start');
      for (let round = 0; round < 2; round += 1) await machine('adjust');
      for (let round = 0; round < 2; round += 1) await start(engineSpec('containerd'));
      expect(await engine('containerd')).toMatchObject({ state: 'running', spec: engineSpec('containerd') });
      for (let round = 0; round < 2; round += 1) await stop('containerd');
      for (let round = 0; round < 2; round += 1) await machine('stop');
      expect(await driver.machine.observe(never)).toEqual({ state: 'off' });
    });

    test('reports the spec that runs after a restart with another one, also to a second service', async () => {
      await machine('start');
      await start(engineSpec('moby', 'auto'));
      await stop('moby');
      await start(engineSpec('moby', 'classic'));
      driver = await open();
      await expectOn(MACHINE);
      expect(await engine('moby')).toMatchObject({ state: 'running', spec: engineSpec('moby', 'classic') });
      await stop('moby');
      expect(await engine('moby')).toEqual({ state: 'stopped' });
    });

    test('keeps the data of each engine across stops and switches', async () => {
      const there = join(directory, 'd');
      await machine('start');
      await start(engineSpec('moby'));
      expect(await subject.data.has(driver, 'moby', there)).toBe(false);
      await subject.data.put(driver, 'moby', there);
      await stop('moby');
      await start(engineSpec('containerd'));
      expect(await engine('moby')).toEqual({ state: 'stopped' });
      expect(await subject.data.has(driver, 'containerd', there)).toBe(false);
      await subject.data.put(driver, 'containerd', there);
      await stop('containerd');
      await machine('stop');
      await machine('start');
      await start(engineSpec('moby'));
      expect(await subject.data.has(driver, 'moby', there)).toBe(true);
      await stop('moby');
      await start(engineSpec('containerd'));
      expect(await subject.data.has(driver, 'containerd', there)).toBe(true);
    });

    test.each(['moby', 'containerd'] as const)(
      'lists everything of %s that survives a stop in `keeps`, so that it can be copied, removed and restored',
      async (name) => {
        const there = join(directory, 'd');
        const { keeps } = driver;
        const run = async (work: () => Promise<void>) => {
          await machine('start');
          await start(engineSpec(name));
          await work();
          await stop(name);
          await machine('stop');
        };
        await run(() => subject.data.put(driver, name, there));
        expect(keeps.length).toBeGreaterThan(0);
        const copies = keeps.filter(existsSync).map((path, index) => [path, join(directory, `copy-${index}`)] as const);
        for (const [path, copy] of copies) await copyTree(path, copy, never);
        for (const path of keeps) rmSync(path, { recursive: true, force: true });
        driver = await open();
        await run(async () => expect(await subject.data.has(driver, name, there)).toBe(false));
        for (const path of keeps) rmSync(path, { recursive: true, force: true });
        for (const [path, copy] of copies) await copyTree(copy, path, never);
        driver = await open();
        await run(async () => expect(await subject.data.has(driver, name, there)).toBe(true));
      },
    );

    test.each(['moby', 'containerd'] as const)(
      'does not show a crashed %s as running, reports each unexpected end but no intended one, and starts it again',
      async (name) => {
        await machine('start');
        let told = 0;
        const end = driver.watch(() => told++);
        for (let round = 0; round < 2; round += 1) {
          await start(engineSpec(name));
          expect(await engine(name)).toMatchObject({ state: 'running', spec: engineSpec(name) });
          const before = told;
          await subject.crash(driver, name, join(directory, 'd'));
          await expect.poll(() => told).toBeGreaterThan(before);
          expect(['stopped', 'unresponsive']).toContain((await engine(name)).state);
          await stop(name);
          expect(await engine(name)).toEqual({ state: 'stopped' });
        }
        end();
        const last = told;
        await start(engineSpec(name));
        expect(await engine(name)).toMatchObject({ state: 'running' });
        await subject.crash(driver, name, join(directory, 'd'));
        expect((await engine(name)).state).not.toBe('running');
        expect(told).toBe(last);
      },
    );

    test.each(['moby', 'containerd'] as const)(
      '%s pulls only allowed images, also after the list has changed',
      async (name) => {
        const [one, other] = await subject.registryImages();
        const listed = (...patterns: string[]) => ({
          ...engineSpec(name),
          allowedImages: { enabled: true, patterns },
        });
        const pull = (image: string) => driver.engines[name].images?.pull(image, never);
        const denied = { code: 'ERR_FORBIDDEN' };
        await machine('start');
        await start(listed(one));
        await expect(pull(other)).rejects.toMatchObject(denied);
        await pull(one);

        await driver.engines[name].perform({ do: 'adjust', spec: listed(other) }, never);
        expect(await engine(name)).toMatchObject({ state: 'running', spec: listed(other) });
        await expect(pull(one)).rejects.toMatchObject(denied);
        await pull(other);

        // Another service takes over.
        await driver.release?.();
        driver = await open();
        expect(await engine(name)).toMatchObject({ state: 'running', spec: listed(other) });
        await expect(pull(one)).rejects.toMatchObject(denied);
        await driver.engines[name].perform({ do: 'adjust', spec: listed() }, never);
        await expect(pull(other)).rejects.toMatchObject(denied);

        await stop(name);
        await start(engineSpec(name));
        await pull(one);
      },
    );

    test('cancels a step when its signal aborts, and can repeat it later', async () => {
      const aborted = AbortSignal.abort();
      await machine('start');
      await expect(start(engineSpec('moby'), aborted)).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
      expect((await engine('moby')).state).not.toBe('running');
      await stop('moby');
      await start(engineSpec('moby'));
      expect(await engine('moby')).toMatchObject({ state: 'running' });
    });

    test.each(['moby', 'containerd'] as const)('reads images of %s without running them', async (name) => {
      await machine('start');
      await start(engineSpec(name));
      await checkImages(driver.engines[name], await subject.sampleImage());
    });

    test('keeps containers for the service with moby across a stop of the engine', async () => {
      const { images, companions } = driver.engines.moby;
      if (!images || !companions) throw new Error('moby keeps no containers');
      const sample = await subject.companionImage();
      await machine('start');
      await start(engineSpec('moby'));
      await expect(companions.ensure({ id: 'one', image: sample }, never)).rejects.toMatchObject({
        code: 'ERR_NOT_FOUND',
      });
      await images.pull(sample, never);
      for (let round = 0; round < 2; round += 1) await companions.ensure({ id: 'one', image: sample }, never);
      expect(await companions.list(never)).toEqual([{ id: 'one', image: sample }]);
      expect(await engine('moby')).toMatchObject({ workload: { runningContainers: 1, containers: 1 } });
      await stop('moby');
      await start(engineSpec('moby'));
      await companions.ensure({ id: 'one', image: sample }, never);
      expect(await engine('moby')).toMatchObject({ workload: { runningContainers: 1, containers: 1 } });
      for (let round = 0; round < 2; round += 1) await companions.remove('one', never);
      expect(await companions.list(never)).toEqual([]);
      expect(await engine('moby')).toMatchObject({ workload: { containers: 0 } });
    });

    test('gives a reason, as a clause, for everything it refuses', () => {
      for (const [path, support] of Object.entries(factory.support)) {
        if (support.level === 'unsupported') expect(support.reason, path).toMatch(/^\S.*[^.]$/);
        if (support.level === 'enforced' && support.except) expect(support.reason, path).toMatch(/^\S.*[^.]$/);
      }
    });

    test(`${subject.powers?.liveCopy ? 'copies' : 'does not claim to copy'} what it keeps while the machine is on`, async () => {
      const there = join(directory, 'd');
      expect(driver.copyLive !== undefined).toBe(subject.powers?.liveCopy ?? false);
      if (!driver.copyLive) return;
      const copies = driver.keeps.map((from, index) => ({ from, to: join(directory, `copy-${index}`) }));
      await expect(driver.copyLive(copies, never)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
      await machine('start');
      await start(engineSpec('moby'));
      await subject.data.put(driver, 'moby', there);
      await driver.copyLive(copies, never);
      expect(await engine('moby')).toMatchObject({ state: 'running' });
      await stop('moby');
      await machine('stop');
      for (const { from, to } of copies) {
        rmSync(from, { recursive: true, force: true });
        if (existsSync(to)) renameSync(to, from);
      }
      driver = await open();
      await machine('start');
      await start(engineSpec('moby'));
      expect(await subject.data.has(driver, 'moby', there)).toBe(true);
    });

    test('moby keeps images in containerd, or refuses to start, as the driver says', async () => {
      await machine('start');
      await driver.machine.observe(never);
      const support = driver.support['containerEngine.mobyStorageDriver'];
      const starting = start(engineSpec('moby', 'snapshotter'));
      if (support.level === 'enforced' && support.except?.includes('snapshotter')) {
        await expect(starting).rejects.toMatchObject({ code: 'ERR_DRIVER_TERMINAL' });
        expect(await engine('moby')).toEqual({ state: 'stopped' });
      } else {
        await starting;
        expect(await engine('moby')).toMatchObject({ state: 'running', spec: { storageDriver: 'snapshotter' } });
      }
    });

    test(`${subject.powers?.room ? 'takes without a stop what it says that it takes' : 'tells no room that it does not have'}`, async () => {
      await machine('start');
      const before = await driver.machine.observe(never);
      const room = before.state === 'on' ? before.room : undefined;
      expect(room !== undefined).toBe(subject.powers?.room ?? false);
      const { memoryGiB, cpus, diskBytes } = room ?? {};
      if (!memoryGiB || !cpus || !diskBytes) return;
      await start(engineSpec('moby'));
      const more = {
        ...MACHINE,
        memoryGiB: MACHINE.memoryGiB + 1,
        // Not every kernel uses processors that are added later; the driver then offers none.
        cpus: Math.min(MACHINE.cpus + 1, cpus.most),
        diskBytes: 2 * MACHINE.diskBytes,
      };
      expect(cpus.least).toBeLessThanOrEqual(MACHINE.cpus);
      expect(memoryGiB.most).toBeGreaterThanOrEqual(more.memoryGiB);
      expect(diskBytes.most).toBeGreaterThanOrEqual(more.diskBytes);
      for (let round = 0; round < 2; round += 1) await driver.machine.perform({ do: 'adjust', spec: more }, never);
      await expectOn(more);
      expect(await engine('moby')).toMatchObject({ state: 'running' });
    });

    const { cluster } = subject;
    if (cluster)
      clusterPower(cluster, () => driver, { start: () => machine('start'), engine: () => start(engineSpec('moby')) });

    const { damage } = subject;
    if (!damage) return;
    test('reports what a running machine lacks, and restores it while the engine runs on', async () => {
      await machine('start');
      await start(engineSpec('moby'));
      await damage(join(directory, 'd'));
      expect(await driver.machine.observe(never)).toMatchObject({ state: 'on', repair: expect.any(String) });
      await machine('adjust');
      await expectOn(MACHINE);
      expect(await engine('moby')).toMatchObject({ state: 'running' });
    });
  });
}

/** What the optional power `connect` promises. */
function clusterPower(
  { web, webName }: NonNullable<DriverSubject['cluster']>,
  driver: () => Driver,
  up: { start(): Promise<void>; engine(): Promise<void> },
): void {
  const never = new AbortController().signal;

  async function running(): Promise<ClusterDriver & { connect: NonNullable<ClusterDriver['connect']> }> {
    const { cluster } = driver();
    const connect = cluster?.connect;
    if (!cluster || !connect) throw new Error('the driver has no cluster that can be reached');
    await up.start();
    await up.engine();
    const [version = ''] = await cluster.versions(never);
    const spec = { version, port: 6443, traefik: true, flannel: true, spinkube: false, localhostOnly: false };
    await cluster.perform({ do: 'start', spec: { ...spec, engine: 'moby' } }, never);
    await expect.poll(async () => (await cluster.observe(never)).state).toBe('running');
    return { ...cluster, connect };
  }

  test('dials a service port by number and by name, and forwards half-closes', async () => {
    const cluster = await running();
    for (const port of [web.port, webName]) {
      const connection = await cluster.connect({ ...web, port }, never);
      connection.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      let answer = '';
      for await (const part of connection) answer += String(part);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    }
    await cluster.perform({ do: 'stop' }, never);
  });

  test('tells a missing service from a missing cluster', async () => {
    const cluster = await running();
    const nowhere = { namespace: 'default', service: 'no-such-service', port: 80 };
    await expect(cluster.connect(nowhere, never)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
    await expect(cluster.connect({ ...web, port: 'nope' }, never)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
    await expect(cluster.connect(web, AbortSignal.abort())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    await cluster.perform({ do: 'stop' }, never);
    await expect(cluster.connect(web, never)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  });
}
