import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Driver, EngineSpec } from '../src/drivers/driver.ts';
import type { GuestImage } from '../src/drivers/guest-images/image.ts';
import { IDLE_MS } from '../src/reconcile/controllers.ts';
import { observe } from '../src/reconcile/observe.ts';
import { compare, type Result, result } from './measure.ts';
import { benchImage, inGuest, MACHINE, openMachine } from './our-machine.ts';

const never = new AbortController().signal;
const STORES = [
  { store: 'classic', name: "dockerd's own image store" },
  { store: 'snapshotter', name: 'the image store of containerd' },
] as const;
/** What runs in the guest meanwhile: three containers that sleep, each of an image of its own. */
const CONTAINERS = `set -e
for n in 1 2 3; do
  echo $n > /tmp/number
  tar -chC / usr/bin/sleep lib64/ld-linux-x86-64.so.2 lib/x86_64-linux-gnu/libc.so.6 tmp/number | docker import - idle$n > /dev/null
  docker run --detach --name idle$n idle$n sleep infinity > /dev/null
done`;
/** New file systems and containers have things to finish. */
const SETTLE_MS = 60_000;
const LOOK_MS = 60_000;
/** Of the clock in `/proc/PID/stat`. */
const TICK_MS = 10;

/**
 * What an idle machine takes with a service beside it, against the same machine without one: processor time of QEMU in a second in which nothing
 * happens but the checks of the service. Empty without an image, as `machine`.
 */
export async function idle(rounds: number): Promise<Result[]> {
  const image = await benchImage();
  const results: Result[] = [];
  for (const { store, name } of STORES) {
    const loads: { checked: number; alone: number }[] = [];
    for (let round = 0; round < rounds; round += 1) loads.push(await idleRound(image, store));
    results.push(
      result({
        name: `machine: idle, ${store} store`,
        compared: `three containers and images in ${name}, with a service / without one`,
        ...compare(
          loads.map(({ checked }) => checked),
          loads.map(({ alone }) => alone),
        ),
        aim: { sign: '<=', value: 2 },
        unit: 'ms',
        rounds,
      }),
    );
  }
  return results;
}

async function idleRound(image: GuestImage, storageDriver: EngineSpec['storageDriver']) {
  const { driver, home, directory } = await openMachine(image);
  const moby: EngineSpec = {
    name: 'moby',
    storageDriver,
    webAssembly: false,
    allowedImages: { enabled: false, patterns: [] },
  };
  try {
    await driver.machine.perform({ do: 'start', spec: MACHINE }, never);
    await driver.engines.moby.perform({ do: 'start', spec: moby }, never);
    await inGuest(driver, CONTAINERS);
    const { pid }: { pid: number } = JSON.parse(readFileSync(join(directory, 'qemu.pid.json'), 'utf8'));
    await driver.release?.();
    const alone = await load(pid, sleep);
    // As a service, which notices the end of a program at once: its connections last, and a new one to dockerd would call for a list.
    const unwatch = driver.watch(() => undefined);
    const checked = await load(pid, (ms) => check(driver, ms));
    unwatch();
    return { alone, checked };
  } finally {
    await driver.engines.moby.perform({ do: 'stop' }, never);
    await driver.machine.perform({ do: 'stop' }, never);
    await driver.release?.();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Milliseconds of processor time in a second. */
async function load(pid: number, pass: (ms: number) => Promise<unknown>): Promise<number> {
  await pass(SETTLE_MS);
  const [began, before] = [performance.now(), processorTime(pid)];
  await pass(LOOK_MS);
  return (processorTime(pid) - before) / ((performance.now() - began) / 1000);
}

/** As the loop of a service that has converged. */
async function check(driver: Driver, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    await observe(driver, never, 'routine');
    await sleep(IDLE_MS);
  }
}

function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const facts = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(facts[11]) + Number(facts[12])) * TICK_MS;
}
