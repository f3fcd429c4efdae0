import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Driver, MachineSpec } from '../src/drivers/driver.ts';
import type { GuestImage } from '../src/drivers/guest-images/image.ts';
import { imageStore } from '../src/drivers/guest-images/store.ts';
import { qemu } from '../src/drivers/index.ts';

const execute = promisify(execFile);
/** The machine of every row. */
export const MACHINE: MachineSpec = {
  memoryGiB: 2,
  cpus: 2,
  diskBytes: 20 * 2 ** 30,
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

/** @throws Error without an image of the cloud kernel: `RDCTL_TEST_IMAGES` names a store of them. */
export async function benchImage(): Promise<GuestImage> {
  const store = resolve(process.env.RDCTL_TEST_IMAGES ?? 'node_modules/.cache/rdctl/guest-images');
  // The smallest: machines take a larger one only for what it has besides.
  const image = (await imageStore(store).list()).find(({ features = [] }) => features.length === 0);
  if (image !== undefined) return image;
  throw new Error(`no guest image of the cloud kernel in ${store}: name a store with one in RDCTL_TEST_IMAGES`);
}

/** A new machine in a new home, through the interface that the service uses; the caller stops it and removes the home. */
export async function openMachine(image: GuestImage): Promise<{ driver: Driver; home: string; directory: string }> {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-bench-'));
  const directory = join(home, 'state', 'drivers', 'qemu');
  const store = join(home, 'guest-images');
  for (const each of [directory, join(home, 'logs'), store]) mkdirSync(each, { recursive: true, mode: 0o700 });
  symlinkSync(image.directory, join(store, basename(image.directory)));
  const env = { ...process.env, RDCTL_HOME: home, HOME: join(home, 'none') };
  const driver = await qemu.open({ directory, logs: join(home, 'logs'), env, now: Date.now, log: () => undefined });
  return { driver, home, directory };
}

/** A command line in the guest, by the way that users have. */
export async function inGuest(driver: Driver, line: string): Promise<void> {
  const access = driver.access?.();
  if (!access) throw new Error('there is no way into the machine');
  const [ssh = '', ...options] = access.ssh;
  await execute(ssh, [...options, access.target, line]);
}
