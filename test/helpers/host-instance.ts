import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Driver, EngineName } from '../../src/drivers/driver.ts';
import { host } from '../../src/drivers/index.ts';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { readProcesses } from '../../src/os/process-table.ts';
import { run } from '../../src/os/run.ts';

export const FOREVER = new AbortController().signal;

/** Everything on this host that belongs to the instance of that directory, except the directory itself. */
export async function hostTraces(directory: string): Promise<string[]> {
  const { id, bridge, chain, tag, run: runtime } = hostPlaces(directory);
  const links = (await run(['ip', '-o', 'link', 'show'])).stdout.split('\n').filter((line) => line.includes(bridge));
  // Another instance on this host may have a rule about our bridge.
  const isOurs = (line: string) => line.includes(chain) || line.includes(tag);
  const rules = (await run(['iptables-save'])).stdout.split('\n').filter(isOurs);
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(directory));
  const processes = (await readProcesses()).filter(({ argv }) => argv.some((part) => part.includes(directory)));
  const sockets = existsSync(runtime) ? readdirSync(runtime, { recursive: true }).map(String) : [];
  const groups = readdirSync('/sys/fs/cgroup').filter((name) => existsSync(`/sys/fs/cgroup/${name}/rdctl-${id}`));
  const plugins = ['/run/docker/plugins', '/etc/docker/plugins']
    .flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []))
    .filter((name) => name.includes(id));
  const programs = processes.map(({ pid, argv }) => `${pid} ${argv.join(' ')}`);
  return [...links, ...rules, ...mounts, ...programs, ...sockets, ...groups, ...plugins];
}

/** A host driver in its own directory. */
export interface HostInstance {
  directory: string;
  driver: Driver;
  /** The driver as a restarted service would open it. */
  reopen(): Promise<Driver>;
  /** Stops everything, removes the directory, and returns what is left over. */
  close(): Promise<string[]>;
}

/** `parent` is an existing directory; by default the temporary directory. */
export async function hostInstance(parent = tmpdir()): Promise<HostInstance> {
  const root = mkdtempSync(join(parent, 'rd-'));
  const directory = join(root, 'host');
  const logs = join(root, 'logs');
  for (const path of [directory, logs]) mkdirSync(path, { mode: 0o700 });
  const open = () => host.open({ directory, logs, log: () => undefined, now: () => Date.now(), env: process.env });
  const driver = await open();
  return {
    directory,
    driver,
    reopen: open,
    async close() {
      for (const name of ['moby', 'containerd'] as const) await driver.engines[name].perform({ do: 'stop' }, FOREVER);
      await driver.machine.perform({ do: 'stop' }, FOREVER);
      await driver.release?.();
      const left = await hostTraces(directory);
      rmSync(root, { recursive: true });
      return left;
    },
  };
}

/** The pid of a program that the instance started. */
export async function pidOf(directory: string, program: 'dockerd' | 'containerd' | 'moby-containerd'): Promise<number> {
  const record: { pid: number } = JSON.parse(
    readFileSync(join(hostPlaces(directory).run, `${program}.pid.json`), 'utf8'),
  );
  return record.pid;
}

/** The endpoint of a running engine; otherwise an error. */
export async function endpointOf(driver: Driver, name: EngineName): Promise<string> {
  const status = await driver.engines[name].observe(FOREVER);
  if (status.state !== 'running') throw new Error(`${name} is ${status.state}`);
  return status.endpoint;
}
