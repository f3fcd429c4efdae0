import { START_SCRIPT } from './live/growth-script.ts';
import { NETWORK_SCRIPT } from './network.ts';

/**
 * For a guest that has come up with its data disk: sets up its network and grows the file system to the size of the disk. Reports one that
 * is still growing or cannot grow. Idempotent.
 */
export const SETTLE_SCRIPT = NETWORK_SCRIPT + START_SCRIPT;
