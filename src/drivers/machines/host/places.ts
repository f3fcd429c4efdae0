import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemCode } from '../../../os/io-error.ts';
import { PRODUCT } from '../../../product.ts';

/** Host resources of one instance. Their names derive from its directory, so that they can be found after a crash. */
export interface HostPlaces {
  /** Eight hexadecimal digits derived from the directory. */
  id: string;
  /** File of the machine record. */
  record: string;
  data: string;
  run: string;
  /** True when `run` is outside the driver directory. */
  runElsewhere: boolean;
  /** Name of the bridge; the kernel allows 15 characters. */
  bridge: string;
  /** Name of the packet filter chains; iptables allows 28 characters. */
  chain: string;
  /** Comment that marks every rule of the instance. */
  tag: string;
  /** Control group of the containers, below the root of the hierarchy. */
  cgroup: string;
}

/** The kernel's limit for a unix socket path, without the terminator. */
const MAX_SOCKET_PATH = 107;
/** The longest path that an engine creates below `run`: dockerd's own, with a network id of 12 digits. */
const LONGEST_SOCKET = 'moby/exec/libnetwork/0123456789ab.sock';

/**
 * Returns the places of an instance. `directory` is the driver's private directory. If it is too long for sockets, they get a short one in `/run`.
 */
export function hostPlaces(directory: string): HostPlaces {
  const id = createHash('sha256').update(directory).digest('hex').slice(0, 8);
  const inside = join(directory, 'run');
  const fits = Buffer.byteLength(join(inside, LONGEST_SOCKET)) <= MAX_SOCKET_PATH;
  return {
    id,
    record: join(directory, 'machine.json'),
    data: join(directory, 'data'),
    run: fits ? inside : join('/run', PRODUCT.name, id),
    runElsewhere: !fits,
    bridge: `rd${id}`,
    chain: `RDCTL-${id}`,
    tag: `${PRODUCT.name}:${id}`,
    cgroup: `/${PRODUCT.name}-${id}`,
  };
}

/** Creates private directories for sockets and data. Idempotent. */
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
