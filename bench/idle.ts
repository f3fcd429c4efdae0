import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Driver } from '../src/drivers/driver.ts';
import { IDLE_MS } from '../src/reconcile/controllers.ts';
import { observe } from '../src/reconcile/observe.ts';

/** What runs in the guest meanwhile: a container that sleeps. */
export const IDLE_CONTAINER = `tar -chC / usr/bin/sleep lib64/ld-linux-x86-64.so.2 lib/x86_64-linux-gnu/libc.so.6 |
docker import - idle > /dev/null && docker run --detach --name idle idle sleep infinity > /dev/null`;
/** New file systems and containers have things to finish. */
const SETTLE_MS = 15_000;
const LOOK_MS = 60_000;
/** Of the clock in `/proc/PID/stat`. */
const TICK_MS = 10;

/** Milliseconds of processor time that the QEMU of a machine takes in a second in which nothing happens but the checks of a service. */
export async function idleLoad(driver: Driver, directory: string): Promise<number> {
  const { signal } = new AbortController();
  const { pid }: { pid: number } = JSON.parse(readFileSync(join(directory, 'qemu.pid.json'), 'utf8'));
  // As a service does, to notice the end of a program at once.
  const unwatch = driver.watch(() => undefined);
  const check = async (ms: number) => {
    const end = performance.now() + ms;
    while (performance.now() < end) {
      await observe(driver, signal);
      await sleep(IDLE_MS);
    }
  };
  await check(SETTLE_MS);
  const [began, before] = [performance.now(), processorTime(pid)];
  await check(LOOK_MS);
  const load = (processorTime(pid) - before) / ((performance.now() - began) / 1000);
  unwatch();
  return load;
}

function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const facts = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(facts[11]) + Number(facts[12])) * TICK_MS;
}
