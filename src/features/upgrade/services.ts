import type { Stats } from 'node:fs';
import { readlink, stat } from 'node:fs/promises';
import type { ProcessEntry } from '../../os/process-list.ts';
import { readProcesses } from '../../os/process-table.ts';

/**
 * The services that run a program, or one that was in its place before: they stay what they were started as. Those of other users only if this
 * user may look at them.
 * @returns their pids; undefined where the system does not show it.
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
    // Through the link, the very file that runs, also when its name is gone or is that of another file in a container.
    const { ino, dev } = await stat(link);
    return (ino === facts.ino && dev === facts.dev) || (await readlink(link)) === `${program} (deleted)`;
  } catch {
    // It has ended, or belongs to another user.
    return false;
  }
}
