import { isObject } from '../json.ts';
import { type FileOperations, fileOperations, readIfThere } from '../os/atomic-file.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { readableRecord, writeRecord } from '../os/record.ts';
import type { HistoryEntry } from '../plan/history.ts';
import type { Desired } from '../reconcile/contract.ts';
import { blocksOf } from '../settings/blocks.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Places } from './places.ts';
import { withReserve } from './reserve.ts';
import { type FileHost, parseRecordedSettings, saveSettings, settingsTarget } from './settings-file.ts';
import { type ServiceState, saveState } from './state-file.ts';

type Files = Pick<
  Places,
  'state' | 'stateFile' | 'stagedSettingsFile' | 'writtenSettingsFile' | 'settingsFile' | 'previousSettingsFile'
>;

/**
 * Makes a desired state durable as a whole, although it is in two files: new settings are staged, the state file names the new generation
 * and thereby decides, and then the settings file follows. After a crash at any instant, `finishWrite` completes the new state or leaves
 * the old one.
 * @throws RdError `ERR_IO`; the old state is then still in place.
 */
export async function saveDesired(
  files: Files,
  driver: string,
  { before, next }: { before: Desired; next: Desired },
  operations?: FileOperations,
): Promise<void> {
  const state = { operations: operations ?? withReserve(files.state) };
  const back = () => saveState(files.stateFile, stateOf(driver, before), state.operations);
  /** Decides the write. Throws with the old state in place, unless restoring it fails too. */
  const decide = async () => {
    const old = await textOf(files.stateFile);
    await saveState(files.stateFile, stateOf(driver, next), state.operations).catch(async (error: unknown) => {
      // The new state may be in place but not flushed: the next service would go on from a state that was refused.
      const isOld = (await textOf(files.stateFile)) === old;
      await (isOld ? Promise.resolve() : back())
        // The next write may have the same number, and change no settings.
        .then(() => removeStaged(files, operations))
        .catch(() => undefined);
      throw error;
    });
  };
  if (next.settings === before.settings) return decide();
  // Rejects a link that is not followed before anything is decided.
  await settingsTarget(files.settingsFile);
  const from = await textOf(files.settingsFile);
  const staged = { generation: next.generation, from: from ?? null, settings: next.settings };
  await writeRecord(files.stagedSettingsFile, staged, operations ? { operations } : {}).catch(
    async (error: unknown) => {
      await removeStaged(files, operations).catch(() => undefined);
      throw error;
    },
  );
  await decide();
  try {
    await saveSettings(files.settingsFile, files.previousSettingsFile, next.settings, operations);
  } catch (error) {
    // The settings are written, though perhaps not safely on the disk: the staged copy stays for a power failure.
    if ((await textOf(files.settingsFile)) !== from) return;
    // If this fails too, the next start completes the new state: never half of each.
    await back();
    await removeStaged(files, operations).catch(() => undefined);
    throw error;
  }
  // A staged file left behind has no effect: the settings file is no longer the one that it was staged for.
  await keepWritten(files, operations).catch(() => undefined);
}

/**
 * Completes a write that a crash interrupted after it was decided, and discards one that was not. Settings that were edited since are left
 * alone.
 * @throws RdError `ERR_IO`.
 */
export async function finishWrite(
  files: Files,
  state: Pick<ServiceState, 'generation'> | undefined,
  operations?: FileOperations,
): Promise<'completed' | 'nothing to do'> {
  const staged = await readableRecord(files.stagedSettingsFile);
  const isDecided = staged !== undefined && staged.generation === state?.generation && isObject(staged.settings);
  const isUntouched = isDecided && ((await textOf(files.settingsFile)) ?? null) === staged.from;
  if (isDecided && isUntouched) {
    // Staged by `saveDesired` above, in a directory that only this user can write to.
    const settings = staged.settings as Settings;
    await saveSettings(files.settingsFile, files.previousSettingsFile, settings, operations);
  }
  if (isDecided) await keepWritten(files, operations);
  else await removeStaged(files, operations);
  return isUntouched ? 'completed' : 'nothing to do';
}

/**
 * Returns the settings that the service wrote last, to compare the file with. Undefined if none are recorded, or if the history has a later change of
 * settings, as after a release that kept no such record.
 */
export async function readWrittenSettings(
  { writtenSettingsFile }: Pick<Files, 'writtenSettingsFile'>,
  host: FileHost,
  history: readonly HistoryEntry[],
): Promise<Settings | undefined> {
  const { generation, settings = null } = (await readableRecord(writtenSettingsFile)) ?? {};
  if (typeof generation !== 'number') return undefined;
  const isOutdated = history.some(
    (entry) => entry.generation > generation && entry.outcome?.result !== 'not applied' && changesSettings(entry),
  );
  return isOutdated ? undefined : parseRecordedSettings(settings, host);
}

function changesSettings({ changes }: HistoryEntry): boolean {
  return changes.some(({ path }) => FIELDS.some((field) => field.path === path));
}

/** Records the content of the settings file, if `saveDesired` has not written it. */
export async function recordWritten(
  { writtenSettingsFile }: Pick<Files, 'writtenSettingsFile'>,
  { generation, settings }: Pick<Desired, 'generation' | 'settings'>,
): Promise<void> {
  await writeRecord(writtenSettingsFile, { generation, settings });
}

/** Returns the stored part of a desired state beside its settings. */
export function stateOf(driver: string, desired: Desired): ServiceState {
  const { power, generation } = desired;
  return { driver, power, generation, ...blocksOf(desired) };
}

async function keepWritten(
  { stagedSettingsFile, writtenSettingsFile }: Files,
  operations = fileOperations,
): Promise<void> {
  await operations.rename(stagedSettingsFile, writtenSettingsFile).catch((cause: unknown) => {
    throw ioError('write', writtenSettingsFile, cause);
  });
}

async function removeStaged({ stagedSettingsFile }: Files, operations = fileOperations): Promise<void> {
  await operations.unlink(stagedSettingsFile).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', stagedSettingsFile, cause);
  });
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readIfThere(path, { follow: true });
  } catch (cause) {
    throw ioError('read', path, cause);
  }
}
