import type { Stats } from 'node:fs';
import { readlink, stat } from 'node:fs/promises';
import type { ProcessEntry } from '../../os/process-list.ts';
import { readProcesses } from '../../os/process-table.ts';

/**
 * Finds the services that run a program, or one that was in its place before: they keep running the program that they were started as. Services of
 * other users are included only if this user may look at them.
 * @returns their pids; undefined if the system does not show them.
 */
export async function servicesOf(program: string): Promise<number[] | undefined> {
  if (process.platform !== 'linux' && process.platform !== 'darwin') return undefined;
  const facts = await stat(program);
  const services: number[] = [];
  for (const entry of await readProcesses()) {
    if (entry.pid === process.pid || !entry.argv.includes('serve')) continue;
    if (await runsFrom(program, facts, entry)) services.push(entry.pid);
  }
  return services;
}

async function runsFrom(program: string, facts: Stats, { pid, argv: [first] }: ProcessEntry): Promise<boolean> {
  if (process.platform !== 'linux') return first === program;
  const link = `/proc/${pid}/exe`;
  try {
    // Follows the link to the very file that runs, even when its name is gone or belongs to another file in a container.
    const { ino, dev } = await stat(link);
    return (ino === facts.ino && dev === facts.dev) || (await readlink(link)) === `${program} (deleted)`;
  } catch {
    // The process has ended, or belongs to another user.
    return false;
  }
}
