import { START_SCRIPT } from './live/growth-script.ts';
import { NETWORK_SCRIPT } from './network.ts';

/**
 * For a guest that has come up with its data disk: its network, and a file system of the size of the disk. Tells of one that has yet to
 * become so, or cannot; harmless when it has been done.
 */
export const SETTLE_SCRIPT = NETWORK_SCRIPT + START_SCRIPT;
