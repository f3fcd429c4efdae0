import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeControlGroup } from './runtime.ts';

/** Where containerd keeps a directory per running container, below its state: `NAMESPACE/ID`. */
const TASKS = 'io.containerd.runtime.v2.task';
/** Shared by all containerds of a host, and not changed by their configuration. */
const RUNC = '/run/containerd/runc';
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/**
 * Removes what containers of a dead containerd left in places that all containerds of the host share: the sockets of
 * their shims, what runc knows of them (it would refuse the same id again), and their control groups. Processes and mounts
 * are gone already.
 */
export async function removeBundleTraces(state: string): Promise<void> {
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
