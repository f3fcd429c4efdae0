import { indentedJson, type JsonObject, parseObject } from '../json.ts';
import { type AtomicWriteOptions, readIfThere, writeFileAtomic } from './atomic-file.ts';
import { ioError } from './io-error.ts';
import type { ReadOptions } from './regular-file.ts';

/**
 * Reads a record of ours: a file with one JSON object.
 * @returns undefined for a missing file, `damaged` for anything but an object, such as the empty file that a power failure can leave.
 * @throws RdError `ERR_IO` when it cannot be read.
 */
export async function readRecord(path: string, options: ReadOptions = {}): Promise<JsonObject | 'damaged' | undefined> {
  try {
    const text = await readIfThere(path, options);
    return text === undefined ? undefined : (parseObject(text) ?? 'damaged');
  } catch (cause) {
    throw ioError('read', path, cause);
  }
}

/** As `readRecord`, for records that nothing depends on: undefined unless it holds an object. Never throws. */
export async function readableRecord(path: string): Promise<JsonObject | undefined> {
  const record = await readRecord(path).catch(() => undefined);
  return record === 'damaged' ? undefined : record;
}

/** Replaces a record as `writeFileAtomic` does. */
export async function writeRecord(path: string, record: object, options?: AtomicWriteOptions): Promise<void> {
  await writeFileAtomic(path, indentedJson(record), options);
}
