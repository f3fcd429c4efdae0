import type { Support, SupportMatrix } from '../../driver.ts';
import { ENFORCED, engineSupport, K3S_SUPPORT, without } from '../../engine-support.ts';
import { DISK_MOST_BYTES, GIB } from './live/room.ts';
import { MOUNT_SUPPORT } from './mounts/support.ts';

const RESTART_REASON = 'and a plan tells where it takes a restart';
const MEMORY = `it changes while the machine runs, ${RESTART_REASON}`;

/** What the qemu driver supports, per setting. The type requires every setting. */
export const QEMU_SUPPORT: SupportMatrix = {
  ...engineSupport('qemu'),
  ...K3S_SUPPORT,
  'application.adminAccess': without('the network of the machine needs no administrator', false),
  'virtualMachine.memoryInGB': { level: 'enforced', partlyLive: true, reason: MEMORY },
  'virtualMachine.numberCPUs': {
    level: 'enforced',
    partlyLive: true,
    reason: `more are added while the machine runs, ${RESTART_REASON}`,
  },
  'virtualMachine.type': { level: 'enforced', except: ['vz'], reason: 'the machine runs in QEMU' },
  'virtualMachine.useRosetta': without('it exists on macOS only', false),
  ...MOUNT_SUPPORT,
  'experimental.virtualMachine.diskSize': {
    level: 'enforced',
    most: DISK_MOST_BYTES,
    partlyLive: true,
    reason: 'a disk has up to 8 TiB, as far as its file system grows while it is in use; it never shrinks',
  },
  'experimental.virtualMachine.sshPortForwarder': ENFORCED,
};

/** Pure: QEMU cannot start with more memory than the host has; without this check that fails only after everything was stopped. */
export function memorySupport(hostBytes: number): { 'virtualMachine.memoryInGB': Support } {
  const most = Math.floor(hostBytes / GIB);
  const reason = `this computer has ${most} GiB of memory; within that, ${MEMORY}`;
  return { 'virtualMachine.memoryInGB': { level: 'enforced', most, partlyLive: true, reason } };
}
