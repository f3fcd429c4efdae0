import { constants, copyFile, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { COMPATIBLE, DROP_IN, PRODUCT } from '../product.ts';
import { readIfThere, writeFileAtomic } from './atomic-file.ts';
import { ioError, systemCode } from './io-error.ts';
import { accepts } from './listening.ts';
import type { Places } from './places.ts';
import { isThere } from './presence.ts';
import { processTable } from './process-identity.ts';

export interface AdoptionOptions {
  /** A person said `--adopt`. */
  adopt: boolean;
  /** Milliseconds since the epoch. */
  now: number;
}

/**
 * In drop-in mode: makes sure that the directories are ours to use. Empty ones get our mark; those that the compatible application
 * made are refused unless `adopt` was said, and then a copy of its settings is kept. Otherwise, and where the mark is, nothing is done.
 * @returns sentences that a person should know.
 * @throws RdError `ERR_WRONG_TARGET` for directories that are not ours, `ERR_ALREADY_RUNNING` while that application runs.
 */
export async function adoptPlaces(here: Places, { adopt, now }: AdoptionOptions): Promise<string[]> {
  const { dropInMarker } = here;
  if (dropInMarker === undefined || (await isThere(dropInMarker))) return [];
  const found = await foreignFiles(here);
  // Another first start may have been quicker: what it makes comes after the mark.
  if (found.length > 0 && (await isThere(dropInMarker))) return [];
  if (found.length > 0 && !adopt) throw notOurs(found);
  await refuseRunning(here);
  const backup = found.length === 0 ? undefined : await keepSettings(here, now);
  const mark = {
    product: PRODUCT.name,
    version: PRODUCT.version,
    since: new Date(now).toISOString(),
    ...(backup === undefined ? {} : { settingsBefore: backup }),
  };
  await writeFileAtomic(dropInMarker, `${JSON.stringify(mark, null, 2)}\n`);
  if (found.length === 0) return [];
  const copy = backup === undefined ? '' : `; its settings as they were are in ${backup}`;
  return [`The directories of ${COMPATIBLE.productName} were adopted (${here.data})${copy}.`];
}

/**
 * Refuses directories in drop-in mode that were never adopted, for commands that would change them without a service.
 * @throws RdError `ERR_WRONG_TARGET`.
 */
export async function requireAdopted(here: Places): Promise<void> {
  if (here.dropInMarker === undefined || (await isThere(here.dropInMarker))) return;
  const found = await foreignFiles(here);
  if (found.length > 0) throw notOurs(found);
}

/**
 * Refuses to start beside the compatible application, whose connection file would be overwritten. Call it while holding the
 * service lock: what answers then is no service of ours.
 * @throws RdError `ERR_ALREADY_RUNNING`.
 */
export async function refuseRunning({ connectionFile, dropIn }: Places): Promise<void> {
  if (dropIn === undefined) return;
  const { port, pid } = announcedIn(await readIfThere(connectionFile).catch(() => undefined));
  // Another program may listen there since the one that wrote the file was killed.
  if (pid !== undefined && !(await processTable.isAlive({ pid }))) return;
  if (port === undefined || !(await accepts({ host: '127.0.0.1', port }))) return;
  throw new RdError(
    'ERR_ALREADY_RUNNING',
    `${COMPATIBLE.productName} runs (port ${port}, as ${connectionFile} says), and two cannot have the same directories`,
    { advice: `Quit it first, or start without RDCTL_COMPAT=${DROP_IN} to have directories of our own.` },
  );
}

/** What is there that only the compatible application can have made. */
async function foreignFiles({ data, settingsFile, bin, dropInMarker = '' }: Places): Promise<string[]> {
  // A mark in the writing is of another start.
  const isOurs = (name: string) => name.startsWith(`.${basename(dropInMarker)}.`);
  const inside = (await names(data)).every(isOurs) ? [] : [data];
  const settings = (await isThere(settingsFile)) ? [settingsFile] : [];
  const programs = dirname(bin);
  const links = programs !== data && (await names(programs)).length > 0 ? [programs] : [];
  return [...inside, ...settings, ...links];
}

async function names(directory: string): Promise<string[]> {
  return readdir(directory).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return [];
    throw ioError('read', directory, cause);
  });
}

/** Never over another copy. */
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

function notOurs(found: readonly string[]): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `${found.join(', ')} ${found.length === 1 ? 'was' : 'were'} made by ${COMPATIBLE.productName}, and nothing there was touched`,
    {
      advice: `To go on with its settings and directories: \`rdctl start --adopt\`, once. To keep them: unset RDCTL_COMPAT.`,
    },
  );
}

function announcedIn(text: string | undefined): { port?: number; pid?: number } {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    const { port, pid } = isObject(value) ? value : {};
    const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536;
    return { ...(isPort ? { port } : {}), ...(typeof pid === 'number' ? { pid } : {}) };
  } catch {
    return {};
  }
}
