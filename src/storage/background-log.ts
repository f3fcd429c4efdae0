import { join } from 'node:path';
import type { ErrorCode } from '../errors.ts';
import { RdError } from '../errors.ts';
import { COMPATIBLE } from '../product.ts';
import { makeDirectory } from './directory.ts';
import { refuseExposed } from './ownership.ts';
import type { Places } from './places.ts';
import { openToAppend } from './regular-file.ts';

/** The file in the log directory that scripts for the compatible application look into (tool facts, 8.3 and 8.4). */
export const BACKGROUND_LOG = 'background.log';
/** Nobody reads this one: what refuses the directory has told it. */
const NO_LOG = { because: 'so no log is written there', otherwise: '' };
const START_FAILED = `Error Starting ${COMPATIBLE.productName}`;
const PROFILE_FAILED = 'Failed to load the deployment profile';

/** What is wrong with the form of a profile has a title of its own; what is wrong with its values has not. */
const OF_A_PROFILE: ErrorCode = 'ERR_PROFILE_INVALID';

/**
 * In drop-in mode: says in the log that scripts read that a start failed, and why; also one that was refused because the directories
 * are not ours, which is all that is written there. Never throws: the failure itself counts.
 */
export async function noteFailedStart({ dropIn, logs }: Places, error: unknown, now: number): Promise<void> {
  if (dropIn === undefined) return;
  const title =
    error instanceof RdError && error.code === OF_A_PROFILE && !ofValues(error) ? PROFILE_FAILED : START_FAILED;
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof RdError ? error.details : [];
  await append(logs, ['Fatal Error:', title, '', message, ...details], now);
}

/** Does what comes before a service runs; a failure is noted as one of the start, and thrown on. */
export async function noting<T>(here: Places, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await noteFailedStart(here, error, Date.now());
    throw error;
  }
}

/** In drop-in mode: one line of what happens. */
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
    // The same directory has the log of the service, whose trouble is told elsewhere.
  }
}
