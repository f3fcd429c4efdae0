import { join } from 'node:path';
import { messageOf, RdError } from '../../errors.ts';
import { defined, isObject, type JsonObject } from '../../json.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRecord, writeRecord } from '../../os/record.ts';
import type { Places } from '../../state/places.ts';
import { reserveBeside } from '../../state/reserve.ts';

/**
 * Progress of replacing kept state. Each phase is written before its step, so that a reader knows what may have been done.
 *
 * ```
 * copying ─▶ swapping ─▶ settings ─▶ proving ─▶ confirmed ─▶ (none)      the replaced state goes last
 *    └──────────┴───────────┴───────────┴─────▶ undone ────▶ (none)      the previous state is back
 * ```
 *
 * A journal that begins while another is at `proving` keeps that one as `earlier`: rolled back, it leaves the earlier one behind instead of none, and
 * at `proving` or `confirmed` it stands for both.
 */
const PHASES = ['copying', 'swapping', 'settings', 'proving', 'confirmed', 'undone'] as const;

type Phase = (typeof PHASES)[number];

export interface Journal {
  phase: Phase;
  /** Name of the restored snapshot; absent when state is only removed. */
  snapshot?: string;
  parts: SwapPart[];
  /** Settings for a rollback, and those of the snapshot. */
  settings?: { before: JsonObject; after: JsonObject };
  /** The previous swap, which has not been seen running yet. */
  earlier?: Journal;
}

/** One path that a driver keeps. */
export interface SwapPart {
  /** Path of the live state. */
  live: string;
  /** Whether there was state before. */
  hadLive: boolean;
  /** Whether there will be state afterwards. */
  comes: boolean;
  /** Set if the `earlier` journal put the current state there; it still keeps the state before that. */
  unproven?: true;
}

const FORMAT = 1;

/** Path of the journal of a restore or reset. */
export function journalFile({ state }: Pick<Places, 'state'>): string {
  return join(state, 'restore.json');
}

/**
 * Reads and validates the journal as a whole before use, because the paths that it names are moved and removed. `kept` are the driver's kept paths,
 * the only ones it may name.
 * @throws RdError `ERR_IO` when it cannot be read or parsed: it must not be ignored.
 */
export async function readJournal(path: string, kept: readonly string[]): Promise<Journal | undefined> {
  const record = await readRecord(path);
  if (record === undefined) return undefined;
  try {
    if (record === 'damaged') throw new Error('it is not a JSON object');
    if (record.format !== FORMAT) throw new Error('its format is not known');
    return journalOf(record, kept, PHASES);
  } catch (cause) {
    throw new RdError('ERR_IO', `the journal ${path} of an interrupted operation cannot be read: ${messageOf(cause)}`, {
      cause,
      advice: 'Start the release that wrote it, or repair the data yourself and then remove the journal.',
    });
  }
}

export async function writeJournal(path: string, journal: Journal): Promise<void> {
  // Uses reserved space, because a reset makes room even on a full disk.
  await writeRecord(path, { format: FORMAT, ...journal }, { operations: reserveBeside(path) });
}

export async function removeJournal(path: string): Promise<void> {
  await reserveBeside(path)
    .unlink(path)
    .catch((cause: unknown) => {
      if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
    });
}

/** Parses a journal. Throws the problem as a clause. */
function journalOf(value: unknown, kept: readonly string[], phases: readonly Phase[]): Journal {
  if (!isObject(value)) throw new Error('it is not an object');
  const { snapshot, settings, earlier } = value;
  const phase = phases.find((each) => each === value.phase);
  if (phase === undefined) throw new Error(`its phase is ${JSON.stringify(value.phase)}`);
  if (snapshot !== undefined && typeof snapshot !== 'string')
    throw new Error('the name of its snapshot is not a string');
  if (!Array.isArray(value.parts)) throw new Error('it has no parts');
  const parts = value.parts.map((part) => partOf(part, kept));
  if (new Set(parts.map(({ live }) => live)).size < parts.length) throw new Error('it lists a part twice');
  if (earlier === undefined && parts.some(({ unproven }) => unproven))
    throw new Error('the earlier journal is missing');
  const pair = settings === undefined ? undefined : settingsOf(settings);
  if (!pair && (phase === 'settings' || phase === 'proving')) throw new Error('it has no settings');
  return {
    phase,
    parts,
    ...defined({ snapshot }),
    ...(pair ? { settings: pair } : {}),
    ...(earlier === undefined ? {} : { earlier: journalOf(earlier, kept, ['proving']) }),
  };
}

function partOf(value: unknown, kept: readonly string[]): SwapPart {
  if (!isObject(value)) throw new Error('one of its parts is not an object');
  const { hadLive, comes, unproven } = value;
  const live = kept.find((path) => path === value.live);
  if (live === undefined)
    throw new Error(`it names ${JSON.stringify(value.live)}, and the data is in ${kept.join(', ')}`);
  if (typeof hadLive !== 'boolean' || typeof comes !== 'boolean' || (unproven !== undefined && unproven !== true)) {
    throw new Error(`it does not say what was in ${live}`);
  }
  return { live, hadLive, comes, ...defined({ unproven }) };
}

function settingsOf(value: unknown): { before: JsonObject; after: JsonObject } {
  if (!isObject(value) || !isObject(value.before) || !isObject(value.after))
    throw new Error('its settings are invalid');
  return { before: value.before, after: value.after };
}
