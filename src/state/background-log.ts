import { join } from 'node:path';
import type { ErrorCode } from '../errors.ts';
import { RdError } from '../errors.ts';
import { makeDirectory } from '../os/directory.ts';
import { openToAppend } from '../os/regular-file.ts';
import { COMPATIBLE } from '../product.ts';
import { refuseExposed } from './ownership.ts';
import type { Places } from './places.ts';

/** The log file that scripts for the compatible application read (docs/drop-in.md). */
export const BACKGROUND_LOG = 'background.log';
/** A discarded notice: the refusal of the directory already reported it. */
const NO_LOG = { because: 'so no log is written there', otherwise: '' };
const START_FAILED = `Error Starting ${COMPATIBLE.productName}`;
const PROFILE_FAILED = 'Failed to load the deployment profile';

/** Syntax errors of a profile have their own title; invalid values do not. */
const PROFILE_ERROR: ErrorCode = 'ERR_PROFILE_INVALID';

/**
 * In drop-in mode: records a failed start and its reason in the log that scripts read; also a start refused because the directories are not
 * ours, where nothing else is written. Never throws: the original failure matters.
 */
export async function recordFailedStart({ dropIn, logs }: Places, error: unknown, now: number): Promise<void> {
  if (dropIn === undefined) return;
  const title =
    error instanceof RdError && error.code === PROFILE_ERROR && !ofValues(error) ? PROFILE_FAILED : START_FAILED;
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof RdError ? error.details : [];
  await append(logs, ['Fatal Error:', title, '', message, ...details], now);
}

/** Runs the work before a service starts; records a failure as a failed start and rethrows it. */
export async function noting<T>(here: Places, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await recordFailedStart(here, error, Date.now());
    throw error;
  }
}

/** In drop-in mode: logs one line per event. */
export async function noteProgress({ dropIn, logs }: Places, text: string, now: number): Promise<void> {
  if (dropIn !== undefined) await append(logs, [text], now);
}

function ofValues({ message }: RdError): boolean {
  return message.startsWith('Error in deployment profiles:') || message.startsWith('Locked kubernetes version');
}

async function append(logs: string, lines: readonly string[], now: number): Promise<void> {
  try {
    refuseExposed([logs], NO_LOG);
    await makeDirectory(logs);
    const file = await openToAppend(join(logs, BACKGROUND_LOG));
    try {
      await file.appendFile(`${new Date(now).toISOString()}: ${lines.join('\n')}\n`);
    } finally {
      await file.close();
    }
  } catch {
    // The service log is in the same directory, and reports its own trouble.
  }
}
