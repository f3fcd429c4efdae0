import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isObject } from '../json.ts';
import type { ProcessKey } from './proc.ts';

/**
 * What is written about a long-lived program: before it is spawned without a process, then with it. A record without a
 * process means that its writer was killed in between, so the program may or may not run.
 */
export interface DaemonRecord {
  argv: readonly string[];
  process?: ProcessKey;
}

/** Undefined when there is no record, or none that can be understood (a power failure can leave an empty file). */
export async function readRecord(file: string): Promise<DaemonRecord | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return parseRecord(text);
}

function parseRecord(text: string): DaemonRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || !Array.isArray(value.argv)) return undefined;
  const argv = value.argv.filter((part) => typeof part === 'string');
  if (typeof value.pid !== 'number' || typeof value.started !== 'string') return { argv };
  return { argv, process: { pid: value.pid, started: value.started } };
}

/** Replaces the record; it holds the old or the new content at every instant. */
export async function writeRecord(file: string, record: DaemonRecord): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.new`;
  await writeFile(temporary, `${JSON.stringify({ argv: record.argv, ...record.process })}\n`, { mode: 0o600 });
  await rename(temporary, file);
}

export async function removeRecord(file: string): Promise<void> {
  await rm(file, { force: true });
}
