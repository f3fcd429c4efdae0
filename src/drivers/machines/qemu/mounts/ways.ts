import { nineP } from './nine-p.ts';
import { reverseSshfs } from './reverse-sshfs.ts';
import { virtiofs } from './virtiofs.ts';
import type { MountType, MountWay } from './way.ts';

/** Every way; a new one is a file and a line here. */
export const MOUNT_WAYS: Readonly<Record<MountType, MountWay>> = {
  'reverse-sshfs': reverseSshfs,
  '9p': nineP,
  virtiofs,
};
