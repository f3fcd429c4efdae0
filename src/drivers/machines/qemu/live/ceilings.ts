import { availableParallelism, totalmem } from 'node:os';
import type { MachineSpec } from '../../../driver.ts';
import type { QemuArguments } from '../arguments.ts';
import { GIB } from './room.ts';

/** A guest with more cannot be addressed by every processor that QEMU plays. */
const MOST_MEMORY_GIB = 512;
const CPUS_PER_CPU = 2;

/**
 * How far a machine can grow while it runs. Memory: what this host has. Processors: twice as many as it has, because those of a guest
 * take turns, and a host with two would leave no room. Places that stay empty cost the guest next to nothing.
 */
export function ceilings(
  { memoryGiB, cpus }: Pick<MachineSpec, 'memoryGiB' | 'cpus'>,
  host = { memoryBytes: totalmem(), cpus: availableParallelism() },
): Pick<QemuArguments, 'memoryCeilingGiB' | 'cpuCeiling'> {
  return {
    memoryCeilingGiB: Math.max(memoryGiB, Math.min(MOST_MEMORY_GIB, Math.floor(host.memoryBytes / GIB))),
    cpuCeiling: Math.max(cpus, CPUS_PER_CPU * host.cpus),
  };
}
