import type { MachineStart } from '../../driver.ts';

/** What starts take on two idle cores without hardware virtualization. */
const USUAL_MS = { boot: 20_000, resume: 3_000 };
/** A guest that hangs is restarted after this many times the usual limit at the latest. */
const MOST = 4;

/**
 * Pure. By how much to multiply limits for responses of the guest, from 1 to 4: how much longer than usual its last start took on this
 * computer, which may be slow or busy.
 */
export function slowness(started: MachineStart | undefined): number {
  if (started === undefined) return 1;
  const ms = started.phases.reduce((sum, phase) => sum + phase.ms, 0);
  return Math.min(MOST, Math.max(1, ms / USUAL_MS[started.how]));
}
