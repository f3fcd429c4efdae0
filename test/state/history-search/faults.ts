import { appendFileSync, writeFileSync } from 'node:fs';
import { mkdir, rename, unlink } from 'node:fs/promises';
import { RdError } from '../../../src/errors.ts';
import type { FileOperations } from '../../../src/os/atomic-file.ts';

export type Fault = 'ENOSPC' | 'EACCES' | 'torn' | 'killed' | 'killed in the middle';
export const FAULTS: readonly Fault[] = ['ENOSPC', 'EACCES', 'torn', 'killed', 'killed in the middle'];

/** The files of one process: real ones, not flushed, because only the process dies. */
export interface FaultyFiles {
  operations: FileOperations;
  append(path: string, text: string): Promise<void>;
  /** The fault happens at the n-th operation from now on. */
  arm(fault: Fault, after: number): void;
  disarm(): void;
  /** Resolves when the process is killed. */
  readonly dead: Promise<void>;
}

export function faultyFiles(): FaultyFiles {
  let armed: { fault: Fault; left: number } | undefined;
  let isDead = false;
  let isWhole = false;
  let die = () => {};
  const dead = new Promise<void>((resolve) => {
    die = () => {
      isDead = true;
      resolve();
    };
  });

  /** `part`: writes a first part of the data, of all of it where `whole`. */
  async function perform(work: () => unknown, part?: (whole: boolean) => void): Promise<void> {
    if (isDead) return new Promise<never>(() => undefined);
    if (armed) armed.left -= 1;
    if (!armed || armed.left > 0) {
      await work();
      return;
    }
    const { fault } = armed;
    armed = undefined;
    if (fault === 'ENOSPC' || fault === 'EACCES') throw failure(fault);
    if (fault === 'torn') {
      part?.(false);
      throw failure('ENOSPC');
    }
    // A kill falls before, in the middle of, or after a write.
    if (fault === 'killed in the middle') {
      part?.(isWhole);
      isWhole = !isWhole;
    }
    die();
    return new Promise<never>(() => undefined);
  }

  return {
    dead,
    arm(fault, after) {
      armed = { fault, left: after };
    },
    disarm() {
      armed = undefined;
    },
    append: (path, text) =>
      perform(
        () => appendFileSync(path, text, { mode: 0o600 }),
        (whole) => appendFileSync(path, whole ? text : text.slice(0, Math.ceil(text.length / 2))),
      ).catch((cause: unknown) => {
        throw new RdError('ERR_IO', `could not write ${path}`, { cause });
      }),
    operations: {
      mkdir: (directory) => perform(() => mkdir(directory, { recursive: true })),
      writeNew: (path, data, mode) =>
        perform(
          () => writeFileSync(path, data, { flag: 'wx', mode }),
          (whole) => writeFileSync(path, whole ? data : data.slice(0, data.length / 2)),
        ),
      rename: (from, to) => perform(() => rename(from, to)),
      syncDirectory: () => perform(() => undefined),
      syncFile: () => perform(() => undefined),
      unlink: (path) => perform(() => unlink(path)),
    },
  };
}

function failure(code: 'ENOSPC' | 'EACCES'): Error {
  return Object.assign(new Error(code), { code });
}
