import { RdError } from '../errors.ts';
import { indentedJson, isObject, type JsonObject, parseObject } from '../json.ts';
import { type AtomicWriteOptions, readIfThere, writeFileAtomic } from './atomic-file.ts';
import { ioError } from './io-error.ts';
import type { ReadOptions } from './regular-file.ts';

/**
 * The current format. Every file of ours states its format as `format`; a file without one has format 1, as all have so far. Missing members that a
 * format gains are filled in; only a change that an older release would misread makes a new format.
 */
const FORMAT = 1;

/**
 * Refuses a parsed file, or line of a file, whose format only a newer release knows: its content must be neither ignored nor replaced.
 * @throws RdError `ERR_OTHER_VERSION` naming the file and its format.
 */
export function refuseNewer(value: unknown, path: string): void {
  if (!isObject(value) || typeof value.format !== 'number' || value.format <= FORMAT) return;
  throw new RdError(
    'ERR_OTHER_VERSION',
    `${path} has format ${value.format}, but this rdctl reads format ${FORMAT} only: a newer release wrote it`,
    {
      advice:
        'Use that release, or install it with `rdctl upgrade`. To begin anew with this one, remove everything: `rdctl reset --factory`.',
    },
  );
}

/**
 * Reads a record of ours: a file with one JSON object.
 * @returns undefined for a missing file, `damaged` for anything but an object, such as the empty file that a power failure can leave.
 * @throws RdError `ERR_IO` when it cannot be read, `ERR_OTHER_VERSION` for the format of a newer release.
 */
export async function readRecord(path: string, options: ReadOptions = {}): Promise<JsonObject | 'damaged' | undefined> {
  try {
    const text = await readIfThere(path, options);
    if (text === undefined) return undefined;
    const record = parseObject(text) ?? 'damaged';
    refuseNewer(record, path);
    return record;
  } catch (cause) {
    throw ioError('read', path, cause);
  }
}

/** Returns the object in a record that nothing depends on, whatever its release, or undefined without one. Never throws. */
export async function readableRecord(path: string): Promise<JsonObject | undefined> {
  const text = await readIfThere(path).catch(() => undefined);
  return text === undefined ? undefined : parseObject(text);
}

/** Replaces a record atomically. */
export async function writeRecord(path: string, record: object, options?: AtomicWriteOptions): Promise<void> {
  await writeFileAtomic(path, indentedJson(record), options);
}
