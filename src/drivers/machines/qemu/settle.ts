import { GROW_SCRIPT } from './live/disk-growth.ts';
import { NETWORK_SCRIPT } from './network.ts';

/**
 * For a guest that has come up with its data disk: its network, and a file system of the size of the disk. Prints why that cannot be
 * had; harmless when it has been done.
 */
export const SETTLE_SCRIPT = NETWORK_SCRIPT + GROW_SCRIPT;
