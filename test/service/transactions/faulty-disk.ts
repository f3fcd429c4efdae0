import { appendFileSync, writeFileSync } from 'node:fs';
import { type FileOperations, fileOperations } from '../../../src/os/atomic-file.ts';
import { ioError } from '../../../src/os/io-error.ts';
import type { HistoryOptions } from '../../../src/state/history-file.ts';

export const FAULTS = ['killed', 'killed in the middle of a write', 'ENOSPC', 'EACCES'] as const;
export type DiskFault = (typeof FAULTS)[number];

/** A disk whose operations all work until `arm`; of those after it the n-th fails. */
export interface FaultyDisk {
  operations: FileOperations;
  append: NonNullable<HistoryOptions['append']>;
  /** `dead` is called when the process is killed: nothing happens after that. */
  arm(fatal: number, fault: DiskFault, dead: () => void): void;
  /** Operations since then. */
  count(): number;
}

/** A full disk stays full, for whatever needs space; a denied permission is back the next time. */
export function faultyDisk(append: NonNullable<HistoryOptions['append']>): FaultyDisk {
  let armed: { fatal: number; fault: DiskFault; dead(): void } | undefined;
  let count = 0;
  const guarded =
    <Args extends unknown[]>(work: (...args: Args) => Promise<void>, tear?: (...args: Args) => void) =>
    async (...args: Args): Promise<void> => {
      if (!armed) return work(...args);
      count += 1;
      const { fatal, fault, dead } = armed;
      const isKill = fault !== 'ENOSPC' && fault !== 'EACCES';
      if (count < fatal || (count > fatal && fault === 'EACCES')) return work(...args);
      if (isKill) {
        if (count === fatal && fault !== 'killed') tear?.(...args);
        dead();
        return new Promise<never>(() => undefined);
      }
      // Removing and renaming need no space, and the state file has a reserve.
      if (fault === 'ENOSPC' && (!tear || String(args[0]).includes('/.state.json.'))) return work(...args);
      throw Object.assign(new Error(fault), { code: fault });
    };
  const half = (data: string | Uint8Array) => data.slice(0, data.length / 2);
  const { writeNew, ...rest } = fileOperations;
  return {
    operations: {
      ...(Object.fromEntries(
        Object.entries(rest).map(([name, work]) => [name, guarded(work as () => Promise<void>)]),
      ) as unknown as typeof rest),
      writeNew: guarded(writeNew, (path, data) => writeFileSync(path, half(data))),
    },
    append: guarded(
      (path: string, text: string) =>
        append(path, text).catch((error: unknown) => {
          throw ioError('write', path, error);
        }),
      (path, text) => appendFileSync(path, half(text)),
    ),
    arm(fatal, fault, dead) {
      count = 0;
      armed = { fatal, fault, dead };
    },
    count: () => count,
  };
}
