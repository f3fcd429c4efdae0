import { mkdir, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemCode } from '../../../os/io-error.ts';
import type { HostPlaces } from './places.ts';

/** Private directories for sockets and data. Idempotent. */
export async function makeRuntime({ run, data }: HostPlaces): Promise<void> {
  for (const directory of [run, data]) await mkdir(directory, { recursive: true, mode: 0o700 });
}

/** Removes the directory of sockets unless an engine is still recorded in it. */
export async function removeRuntime({ run, runElsewhere }: HostPlaces): Promise<void> {
  const left = await readdir(run).catch(() => []);
  if (left.length > 0) return;
  await rm(run, { recursive: true, force: true });
  // Shared by all instances of this host: removed with the last one.
  if (runElsewhere) await removeIfEmpty(dirname(run));
}

/** Removes the control group of the containers and its children; one with processes in it stays. */
export async function removeControlGroup(cgroup: string): Promise<void> {
  const root = '/sys/fs/cgroup';
  const hierarchies = await readdir(root, { withFileTypes: true }).catch(() => []);
  const candidates = [root, ...hierarchies.filter((entry) => entry.isDirectory()).map(({ name }) => join(root, name))];
  for (const hierarchy of candidates) await removeGroupTree(join(hierarchy, cgroup));
}

async function removeGroupTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (entry.isDirectory()) await removeGroupTree(join(directory, entry.name));
  }
  await removeIfEmpty(directory);
}

async function removeIfEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch((error: unknown) => {
    const code = systemCode(error) ?? '';
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOTDIR', 'EROFS', 'EPERM', 'EACCES'].includes(code)) throw error;
  });
}
