import type { MachineSpec } from '../../../driver.ts';
import { nineP } from './nine-p.ts';
import { reverseSshfs } from './reverse-sshfs.ts';
import { virtiofs } from './virtiofs.ts';
import { isMountType, type MountType, type MountWay } from './way.ts';

/** Every way; a new one is a file and a line here. */
export const MOUNT_WAYS: Readonly<Record<MountType, MountWay>> = {
  'reverse-sshfs': reverseSshfs,
  '9p': nineP,
  virtiofs,
};

/** Pure: what the image of a machine has to have for it, if anything. */
export function featureFor({ mount }: Pick<MachineSpec, 'mount'>): string | undefined {
  return isMountType(mount.type) ? MOUNT_WAYS[mount.type].feature : undefined;
}
