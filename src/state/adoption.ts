import { constants, copyFile, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { acceptsConnections } from '../os/listening.ts';
import { isThere } from '../os/presence.ts';
import { processTable } from '../os/process-identity.ts';
import { COMPATIBLE, DROP_IN, PRODUCT } from '../product.ts';
import { BACKGROUND_LOG } from './background-log.ts';
import type { Places } from './places.ts';

export interface AdoptionOptions {
  /** The user passed `--adopt`. */
  adopt: boolean;
  /** Milliseconds since the epoch. */
  now: number;
}

/**
 * In drop-in mode: ensures that the directories are ours to use. Marks empty ones, and those with only a settings file, which scripts
 * create before the first start. Refuses those of the compatible application without `adopt`. Keeps a copy of existing settings. Does
 * nothing where the mark exists.
 * @returns notices for the user.
 * @throws RdError `ERR_WRONG_TARGET` for foreign directories, `ERR_ALREADY_RUNNING` while that application runs.
 */
export async function adoptPlaces(here: Places, { adopt, now }: AdoptionOptions): Promise<string[]> {
  const { dropInMarker } = here;
  if (dropInMarker === undefined || (await isThere(dropInMarker))) return [];
  const found = await foreignFiles(here);
  // A concurrent first start may have been faster: it creates its files after the mark.
  if (found.length > 0 && (await isThere(dropInMarker))) return [];
  if (found.length > 0 && !adopt) throw notOurs(found);
  await refuseRunning(here);
  const hasSettings = await isThere(here.settingsFile);
  // Files of a concurrent first start come after its mark.
  if (hasSettings && (await isThere(dropInMarker))) return [];
  const backup = hasSettings ? await keepSettings(here, now) : undefined;
  const mark = {
    product: PRODUCT.name,
    version: PRODUCT.version,
    since: new Date(now).toISOString(),
    ...(backup === undefined ? {} : { settingsBefore: backup }),
  };
  await writeFileAtomic(dropInMarker, `${JSON.stringify(mark, null, 2)}\n`);
  if (found.length > 0) {
    const copy = backup === undefined ? '' : `; its settings as they were are in ${backup}`;
    return [`The directories of ${COMPATIBLE.productName} were adopted (${here.data})${copy}.`];
  }
  if (backup === undefined) return [];
  return [`${here.settingsFile} was there before the first start and is in force; as it was it is kept in ${backup}.`];
}

/**
 * In drop-in mode, refuses directories that were never adopted, for commands that would change them without a service.
 * @throws RdError `ERR_WRONG_TARGET`.
 */
export async function requireAdopted(here: Places): Promise<void> {
  if (here.dropInMarker === undefined || (await isThere(here.dropInMarker))) return;
  const found = await foreignFiles(here);
  if (found.length > 0) throw notOurs(found);
}

/**
 * As `requireAdopted`, for commands that remove something: a lone settings file, which a start may use, is not ours to remove.
 * @throws RdError `ERR_WRONG_TARGET`.
 */
export async function requireMarked(here: Places): Promise<void> {
  await requireAdopted(here);
  if (here.dropInMarker === undefined || (await isThere(here.dropInMarker))) return;
  if (await isThere(here.settingsFile)) throw notOurs([here.settingsFile]);
}

/**
 * Refuses to start beside the compatible application, whose connection file would be overwritten. Call it while holding the service lock,
 * so that a responding service cannot be ours.
 * @throws RdError `ERR_ALREADY_RUNNING`.
 */
export async function refuseRunning({ connectionFile, dropIn }: Places): Promise<void> {
  if (dropIn === undefined) return;
  const { port, pid } = announcedIn(await readIfThere(connectionFile).catch(() => undefined));
  // Another program may listen there since the writer of the file was killed.
  if (pid !== undefined && !(await processTable.isAlive({ pid }))) return;
  if (port === undefined || !(await acceptsConnections({ host: '127.0.0.1', port }))) return;
  throw new RdError(
    'ERR_ALREADY_RUNNING',
    `${COMPATIBLE.productName} runs (port ${port}, as ${connectionFile} says), and two cannot have the same directories`,
    { advice: `Quit it first, or start without RDCTL_COMPAT=${DROP_IN} to have directories of our own.` },
  );
}

/** Evidence of the compatible application: a lone settings file may come from a script before a start. */
async function foreignFiles({ data, settingsFile, bin, dropInMarker = '' }: Places): Promise<string[]> {
  const inside = await names(data);
  const theirs = [];
  for (const name of inside) if (!(await isNobodys(join(data, name)))) theirs.push(name);
  const programs = dirname(bin);
  const links = programs !== data && (await names(programs)).length > 0 ? [programs] : [];
  if (theirs.length + links.length === 0) return [];
  const settings = (await isThere(settingsFile)) ? [settingsFile] : [];
  return [...(theirs.length > 0 ? [data] : []), ...settings, ...links];

  /** A partial mark belongs to another start, and the log may be of a failed one. On Windows the settings are here too. */
  async function isNobodys(path: string): Promise<boolean> {
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
    `${found.join(', ')} ${found.length === 1 ? 'was' : 'were'} made by ${COMPATIBLE.productName}, and nothing of it was changed`,
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
