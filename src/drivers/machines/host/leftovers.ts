import { readdir, readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RdError } from '../../../errors.ts';
import type { Clock } from '../../../os/clock.ts';
import type { ProcessEntry } from '../../../os/process-list.ts';
import { readProcesses, signalProcess } from '../../../os/process-table.ts';
import type { EngineArea, Run } from '../../shell.ts';
import { type Mount, parseMounts } from '../shared/mountinfo.ts';
import { removeControlGroup } from './places.ts';

const POLL_MS = 50;
const END_MS = 15_000;

/** True for the directory itself and everything below it. */
export function isWithin(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** True if the root directory of a process with these mounts consists of files below the directories. */
export function rootIsWithin(mounts: readonly Mount[], directories: readonly string[]): boolean {
  const root = mounts.find(({ point }) => point === '/');
  if (!root) return false;
  const upper = /(?:^|,)upperdir=([^,]*)/.exec(root.options)?.[1];
  return isWithin(root.root, directories) || (upper !== undefined && isWithin(upper, directories));
}

/** True for a shim of the engine, which was given its socket. */
export function isShim(argv: readonly string[], socket: string): boolean {
  const at = argv.indexOf('-address');
  return basename(argv[0] ?? '').startsWith('containerd-shim') && at > 0 && argv[at + 1] === socket;
}

/** Returns shims of the engine, their descendants, and containers whose shim is gone. */
async function processesOf(area: EngineArea): Promise<ProcessEntry[]> {
  const all = await readProcesses();
  const mine = new Set(all.filter(({ argv }) => isShim(argv, area.containerd)).map(({ pid }) => pid));
  for (const { pid } of all) {
    if (mine.has(pid)) continue;
    const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    if (rootIsWithin(parseMounts(mounts), area.directories)) mine.add(pid);
  }
  for (let grown = true; grown; ) {
    const children = all.filter(({ pid, parent }) => mine.has(parent) && !mine.has(pid));
    for (const { pid } of children) mine.add(pid);
    grown = children.length > 0;
  }
  return all.filter(({ pid }) => mine.has(pid));
}

/** Returns mount points below the directories, innermost and latest first. */
async function mountsOf(area: EngineArea): Promise<string[]> {
  const mounts = parseMounts(await readFile('/proc/self/mountinfo', 'utf8'));
  return mounts.flatMap(({ point }) => (isWithin(point, area.directories) ? [point] : [])).reverse();
}

/** Describes leftover processes and mounts: `process 12 (containerd-shim)`, `mount /path`. */
export async function findLeftovers(area: EngineArea): Promise<string[]> {
  const [processes, mounts] = await Promise.all([processesOf(area), mountsOf(area)]);
  return [
    ...processes.map(({ pid, argv }) => `process ${pid} (${argv[0] ?? '?'})`),
    ...mounts.map((point) => `mount ${point}`),
  ];
}

/**
 * Kills the processes, unmounts, and removes the shim sockets and the control group. The caller has made sure that the engine's own
 * programs have ended.
 * @throws RdError `ERR_DRIVER_FAILED` naming what remains.
 */
export async function clearLeftovers(area: EngineArea, run: Run, clock: Clock): Promise<void> {
  const deadline = clock.now() + END_MS;
  for (;;) {
    const processes = await processesOf(area);
    if (processes.length === 0) break;
    for (const entry of processes) await signalProcess(entry, 'SIGKILL');
    if (clock.now() >= deadline) {
      throw new RdError(
        'ERR_DRIVER_FAILED',
        `processes of containers cannot be killed: pid ${processes.map(({ pid }) => pid).join(', ')}`,
      );
    }
    await clock.sleep(POLL_MS);
  }
  for (const point of await mountsOf(area)) {
    const { exitCode } = await run(['umount', point], { accept: [0, 1, 32] });
    // Busy: another process uses it. A lazy unmount takes effect when it leaves.
    if (exitCode !== 0) await run(['umount', '--lazy', point], { accept: [0, 1, 32] });
  }
  const left = await mountsOf(area);
  if (left.length > 0) throw new RdError('ERR_DRIVER_FAILED', `could not unmount ${left.join(', ')}`);
  await removeBundleTraces(area.state);
  if (area.cgroup !== undefined) await removeControlGroup(area.cgroup);
}

/** Directory in which containerd keeps a directory per running container, below its state: `NAMESPACE/ID`. */
const TASKS = 'io.containerd.runtime.v2.task';
/** Shared by all containerds of a host; not configurable. */
const RUNC = '/run/containerd/runc';
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/**
 * Removes traces that containers of a dead containerd left in places shared by all containerds of the host: shim sockets, runc state (runc would
 * refuse the same id again), and control groups. Processes and mounts are already gone.
 */
async function removeBundleTraces(state: string): Promise<void> {
  for (const namespace of await namesIn(join(state, TASKS))) {
    for (const id of await namesIn(join(state, TASKS, namespace))) {
      await removeShimSocket(join(state, TASKS, namespace, id, 'address'));
      const known = join(RUNC, namespace, id);
      // Another containerd of the host may have a container of that name.
      const text = await readFile(join(known, 'state.json'), 'utf8').catch(() => '');
      if (!text.includes(`${state}/${TASKS}/`)) continue;
      await rm(known, { recursive: true, force: true });
      await removeControlGroup(join('/', namespace, id));
    }
  }
}

async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => NAME.test(name));
}

async function removeShimSocket(file: string): Promise<void> {
  const address = await readFile(file, 'utf8').catch(() => '');
  const socket = /^unix:\/\/(\/run\/containerd\/s\/[0-9a-f]{64})$/.exec(address.trim())?.[1];
  if (socket) await rm(socket, { force: true });
}
