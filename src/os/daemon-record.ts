import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isObject } from '../json.ts';
import { makeDirectory } from './directory.ts';
import { type Place, parsePlace, placeOf, placeStatus } from './place.ts';
import type { ProcessKey } from './proc.ts';
import { readRegular } from './regular-file.ts';

/**
 * The record of a long-lived program: written before it is spawned without a process, then with it. A record without a process means that
 * its writer was killed in between, so the program may or may not run.
 */
export interface DaemonRecord {
  argv: readonly string[];
  process?: ProcessKey;
}

/**
 * Undefined when there is no valid record (a power failure can leave an empty file), or only the copy of one in another directory: the
 * program belongs to that one.
 */
export async function readRecord(file: string): Promise<DaemonRecord | undefined> {
  const text = await readRegular(file).then(String, () => '');
  const { record, at } = parseRecord(text) ?? {};
  return placeStatus(at, dirname(file)) === 'copied' ? undefined : record;
}

function parseRecord(text: string): { record: DaemonRecord; at: Place | undefined } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || !Array.isArray(value.argv)) return undefined;
  const argv = value.argv.filter((part) => typeof part === 'string');
  const at = parsePlace(value.at);
  if (typeof value.pid !== 'number' || typeof value.started !== 'string') return { record: { argv }, at };
  return { record: { argv, process: { pid: value.pid, started: value.started } }, at };
}

/** Replaces the record atomically. */
export async function writeRecord(file: string, record: DaemonRecord): Promise<void> {
  await makeDirectory(dirname(file));
  const temporary = `${file}.new`;
  // Leftovers at this path are replaced, never written to.
  await rm(temporary, { force: true });
  await writeFile(
    temporary,
    `${JSON.stringify({ argv: record.argv, ...record.process, at: placeOf(dirname(file)) })}\n`,
    {
      mode: 0o600,
      flag: 'wx',
    },
  );
  await rename(temporary, file);
}

export async function removeRecord(file: string): Promise<void> {
  await rm(file, { force: true });
}
