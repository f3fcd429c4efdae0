import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErrorCode } from '../errors.ts';
import { RdError } from '../errors.ts';
import { COMPATIBLE } from '../product.ts';
import { makeDirectory } from './directory.ts';
import type { Places } from './places.ts';

/** The file in the log directory that scripts for the compatible application look into (tool facts, 8.3 and 8.4). */
const NAME = 'background.log';
const START_FAILED = `Error Starting ${COMPATIBLE.productName}`;
const PROFILE_FAILED = 'Failed to load the deployment profile';

/** What is wrong with the form of a profile has a title of its own; what is wrong with its values has not. */
const OF_A_PROFILE: ErrorCode = 'ERR_PROFILE_INVALID';

/** In drop-in mode: says in the log that scripts read that a start failed, and why. Never throws: the failure itself counts. */
export async function noteFailedStart({ dropInMarker, logs }: Places, error: unknown, now: number): Promise<void> {
  // The log of directories that are not ours is not ours either.
  if (dropInMarker === undefined || !existsSync(dropInMarker)) return;
  const title =
    error instanceof RdError && error.code === OF_A_PROFILE && !ofValues(error) ? PROFILE_FAILED : START_FAILED;
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof RdError ? error.details : [];
  await append(logs, ['Fatal Error:', title, '', message, ...details], now);
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
    await makeDirectory(logs);
    await appendFile(join(logs, NAME), `${new Date(now).toISOString()}: ${lines.join('\n')}\n`, { mode: 0o600 });
  } catch {
    // The same directory has the log of the service, whose trouble is told elsewhere.
  }
}
