import { readFileSync } from 'node:fs';

/** Resident memory of a process in bytes; of Linux. */
export function residentMemory(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]) * 1024;
}
