import { constants } from 'node:fs';
import { copyFile, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type ErrorCode, messageOf, RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { makeDirectory } from '../os/directory.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { processTable } from '../os/process-table.ts';
import { readableRecord, writeRecord } from '../os/record.ts';
import { isThere, openToAppend } from '../os/regular-file.ts';
import { acceptsConnections } from '../os/socket.ts';
import { COMPATIBLE, DROP_IN, PRODUCT } from '../product.ts';
import { refuseExposed } from './ownership.ts';
import type { Places } from './places.ts';

export interface AdoptionOptions {
  /** The user passed `--adopt`. */
  adopt: boolean;
  /** Milliseconds since the epoch. */
  now: number;
}

/**
 * In drop-in mode, ensures that the directories are ours to use. Marks empty ones, and those with only a settings file, which scripts create before
 * the first start. Refuses those of the compatible application without `adopt`. Keeps a copy of existing settings. Does nothing if the mark exists.
 * @returns notices for the user.
 * @throws RdError `ERR_WRONG_TARGET` for foreign directories, `ERR_ALREADY_RUNNING` while that application runs.
 */
export async function adoptPlaces(places: Places, { adopt, now }: AdoptionOptions): Promise<string[]> {
  const { dropInMarker } = places;
  if (dropInMarker === undefined || (await isThere(dropInMarker))) return [];
  const foreign = await foreignFiles(places);
  // A concurrent first start may have been faster: it creates its files after the mark.
  if (foreign.length > 0 && (await isThere(dropInMarker))) return [];
  if (foreign.length > 0 && !adopt) throw foreignDirectories(foreign);
  await refuseRunning(places);
  const hasSettings = await isThere(places.settingsFile);
  // Files of a concurrent first start come after its mark.
  if (hasSettings && (await isThere(dropInMarker))) return [];
  const backup = hasSettings ? await keepSettings(places, now) : undefined;
  const mark = {
    product: PRODUCT.name,
    version: PRODUCT.version,
    since: new Date(now).toISOString(),
    ...defined({ settingsBefore: backup }),
  };
  await writeRecord(dropInMarker, mark);
  if (foreign.length > 0) {
    const copy = backup === undefined ? '' : `; its settings as they were are in ${backup}`;
    return [`The directories of ${COMPATIBLE.productName} were adopted (${places.data})${copy}.`];
  }
  if (backup === undefined) return [];
  return [
    `${places.settingsFile} was there before the first start and is in force; as it was it is kept in ${backup}.`,
  ];
}

/**
 * In drop-in mode, refuses directories that were never adopted, for commands that would change them without a service.
 * @throws RdError `ERR_WRONG_TARGET`.
 */
export async function requireAdopted(places: Places): Promise<void> {
  if (places.dropInMarker === undefined || (await isThere(places.dropInMarker))) return;
  const foreign = await foreignFiles(places);
  if (foreign.length > 0) throw foreignDirectories(foreign);
}

/**
 * In drop-in mode, refuses directories that were never adopted, and a lone settings file, for commands that remove something: a start may use that
 * file, but it is not ours to remove.
 * @throws RdError `ERR_WRONG_TARGET`.
 */
export async function requireMarked(places: Places): Promise<void> {
  await requireAdopted(places);
  if (places.dropInMarker === undefined || (await isThere(places.dropInMarker))) return;
  if (await isThere(places.settingsFile)) throw foreignDirectories([places.settingsFile]);
}

/**
 * Refuses to start beside the compatible application, whose connection file would be overwritten. Call it while holding the service lock,
 * so that a responding service cannot be ours.
 * @throws RdError `ERR_ALREADY_RUNNING`.
 */
export async function refuseRunning({ connectionFile, dropIn }: Places): Promise<void> {
  if (dropIn === undefined) return;
  const { port, pid } = (await readableRecord(connectionFile)) ?? {};
  // Another program may listen there since the writer of the file was killed.
  if (typeof pid === 'number' && !(await processTable.isAlive({ pid }))) return;
  if (!isPort(port) || !(await acceptsConnections({ host: '127.0.0.1', port }))) return;
  throw new RdError(
    'ERR_ALREADY_RUNNING',
    `${COMPATIBLE.productName} runs (port ${port}, as ${connectionFile} says), and two cannot have the same directories`,
    { advice: `Quit it first, or start without RDCTL_COMPAT=${DROP_IN} to use separate directories.` },
  );
}

/** Lists the evidence of the compatible application. A lone settings file is none, because it may come from a script before a start. */
async function foreignFiles({ data, settingsFile, bin, dropInMarker = '' }: Places): Promise<string[]> {
  const inside = await names(data);
  const foreign = [];
  for (const name of inside) if (!(await isNeutral(join(data, name)))) foreign.push(name);
  const programs = dirname(bin);
  const links = programs !== data && (await names(programs)).length > 0 ? [programs] : [];
  if (foreign.length + links.length === 0) return [];
  const settings = (await isThere(settingsFile)) ? [settingsFile] : [];
  return [...(foreign.length > 0 ? [data] : []), ...settings, ...links];

  /**
   * True for a file that does not show who created it. A partial mark belongs to another start, and the log may be of a failed one. On Windows the
   * settings are here too.
   */
  async function isNeutral(path: string): Promise<boolean> {
    if (path === settingsFile || basename(path).startsWith(`.${basename(dropInMarker)}.`)) return true;
    if (basename(path) !== 'logs') return false;
    const logs = await names(path).catch(() => ['it cannot be read']);
    return logs.every((name) => name === BACKGROUND_LOG);
  }
}

async function names(directory: string): Promise<string[]> {
  return readdir(directory).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return [];
    throw ioError('read', directory, cause);
  });
}

/** Keeps a copy of the settings, never over another copy. */
async function keepSettings({ settingsFile, config }: Places, now: number): Promise<string | undefined> {
  const stamp = new Date(now).toISOString().replace(/[-:.]/g, '');
  const copy = join(config, `settings.before-${PRODUCT.name}-${stamp}.json`);
  try {
    await copyFile(settingsFile, copy, constants.COPYFILE_EXCL);
    return copy;
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('copy the settings to', copy, cause);
  }
}

function foreignDirectories(foreign: readonly string[]): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `${foreign.join(', ')} ${foreign.length === 1 ? 'was' : 'were'} made by ${COMPATIBLE.productName}, and nothing of it was changed`,
    {
      advice: `To continue with its settings and directories: \`rdctl start --adopt\`, once. To keep them: unset RDCTL_COMPAT.`,
    },
  );
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}

/** The log file that scripts for the compatible application read (docs/drop-in.md). */
const BACKGROUND_LOG = 'background.log';
/** A discarded notice: the refusal of the directory already reported it. */
const NO_LOG = { because: 'so no log is written there', otherwise: '' };
const START_FAILED = `Error Starting ${COMPATIBLE.productName}`;
const PROFILE_FAILED = 'Failed to load the deployment profile';

/** Syntax errors of a profile have their own title; invalid values do not. */
const PROFILE_ERROR: ErrorCode = 'ERR_PROFILE_INVALID';

/**
 * In drop-in mode, records a failed start and its reason in the log that scripts read, and also a start refused because the directories are not ours,
 * where nothing else is written. Never throws: the original failure matters.
 */
export async function recordFailedStart({ dropIn, logs }: Places, error: unknown, now: number): Promise<void> {
  if (dropIn === undefined) return;
  const title =
    error instanceof RdError && error.code === PROFILE_ERROR && !isValueError(error) ? PROFILE_FAILED : START_FAILED;
  const message = messageOf(error);
  const details = error instanceof RdError ? error.details : [];
  await append(logs, ['Fatal Error:', title, '', message, ...details], now);
}

/** Runs the work before a service starts; records a failure as a failed start and rethrows it. */
export async function noting<T>(places: Places, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await recordFailedStart(places, error, Date.now());
    throw error;
  }
}

/** In drop-in mode, logs one line per event. */
export async function noteProgress({ dropIn, logs }: Places, text: string, now: number): Promise<void> {
  if (dropIn !== undefined) await append(logs, [text], now);
}

function isValueError({ message }: RdError): boolean {
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
