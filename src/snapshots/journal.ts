import { unlink } from 'node:fs/promises';
import { RdError } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../storage/atomic-file.ts';
import { ioError, systemCode } from '../storage/io-error.ts';

/**
 * How far the replacing of kept state has come. Written before the step that it names, so that whoever finds it knows what may have
 * been done.
 *
 * ```
 * copying ─▶ swapping ─▶ settings ─▶ proving ─▶ confirmed ─▶ (none)      the replaced state goes last
 *    └──────────┴───────────┴───────────┴─────▶ undone ────▶ (none)      what was there is back
 * ```
 *
 * One that begins while another is at `proving` holds that one as `earlier`: undone it leaves the earlier one behind instead of none,
 * and at `proving` or `confirmed` it stands for both.
 */
type Phase = 'copying' | 'swapping' | 'settings' | 'proving' | 'confirmed' | 'undone';

export interface Journal {
  phase: Phase;
  /** Name of the snapshot that is put in place; absent where state is only taken away. */
  snapshot?: string;
  parts: SwapPart[];
  /** Settings to go back to, and those of the snapshot. */
  settings?: { before: JsonObject; after: JsonObject };
  /** What had been put in place before it, and has not yet been seen to run. */
  earlier?: Journal;
}

/** One thing that a driver keeps. */
export interface SwapPart {
  /** Where it belongs. */
  live: string;
  /** There was something before. */
  hadLive: boolean;
  /** There will be something after. */
  comes: boolean;
  /** What is there now was put there by the `earlier` journal, which still keeps what was there before. */
  unproven?: true;
}

const FORMAT = 1;

/** @throws RdError `ERR_IO` when it cannot be read or understood: what it knows must not be passed over. */
export async function readJournal(path: string): Promise<Journal | undefined> {
  const text = await readIfThere(path).catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  if (text === undefined) return undefined;
  const value = parse(text);
  if (!isObject(value) || value.format !== FORMAT || !Array.isArray(value.parts)) {
    throw new RdError('ERR_IO', `the journal ${path} cannot be understood, and it says what is half done`, {
      advice: 'Start the release that wrote it, or ask for help before you remove it.',
    });
  }
  // Written whole by `writeJournal` or not at all.
  return value as unknown as Journal;
}

export async function writeJournal(path: string, journal: Journal): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify({ format: FORMAT, ...journal }, null, 2)}\n`);
}

export async function removeJournal(path: string): Promise<void> {
  await unlink(path).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
