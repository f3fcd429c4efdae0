import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { isObject } from '../json.ts';
import { canonicalise } from '../settings/canonical.ts';
import { fillDefaults } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { migrate, versionProblem } from '../settings/migrate.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import { validate as hasShape } from '../settings/validators/settings-v19.gen.js';
import type { FileOperations } from './atomic-file.ts';
import { readIfThere, writeFileAtomic } from './atomic-file.ts';
import { ioError } from './io-error.ts';
import { setAside } from './set-aside.ts';
import { shapeProblems } from './shape-problems.ts';

export type LoadedSettings =
  /** There is no file: the first run. */
  | { kind: 'missing' }
  | { kind: 'loaded'; settings: Settings }
  /** The file could not be used and now has another name. `reason` is a clause, `movedTo` a path. */
  | { kind: 'set-aside'; reason: string; movedTo: string };

/**
 * Reads the settings file: migrated, canonical, complete. What cannot be used is set aside, never overwritten.
 * @throws RdError `ERR_SETTINGS_FILE` when the file cannot be read at all, or was written by a newer release.
 */
export async function loadSettings(
  path: string,
  host: { platform: Platform; arch: string; osRelease?: string },
  now: number,
): Promise<LoadedSettings> {
  let text: string | undefined;
  try {
    text = await readIfThere(path);
  } catch (cause) {
    throw ioError('read the settings file', path, cause, 'ERR_SETTINGS_FILE');
  }
  if (text === undefined) return { kind: 'missing' };
  const outcome = interpret(path, text, host);
  if ('settings' in outcome) return { kind: 'loaded', settings: outcome.settings };
  return { kind: 'set-aside', reason: outcome.reason, movedTo: await setAside(path, now) };
}

/** Makes settings durable; the file before this write is kept as `previous`. */
export async function saveSettings(
  path: string,
  previous: string,
  settings: Settings,
  operations?: FileOperations,
): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify(settings, null, 2)}\n`, {
    previous,
    ...(operations ? { operations } : {}),
  });
}

function interpret(
  path: string,
  text: string,
  host: { platform: Platform; arch: string; osRelease?: string },
): { settings: Settings } | { reason: string } {
  const stored = parse(text);
  if (stored === undefined) return { reason: 'it is not JSON' };
  if (!isObject(stored)) return { reason: 'it does not hold an object' };
  if (stored.version === undefined) return { reason: 'it has no version' };
  if (typeof stored.version === 'number' && stored.version > SCHEMA_VERSION) throw newer(path, stored.version);
  const problem = versionProblem(stored.version);
  if (typeof stored.version !== 'number' || problem !== undefined) {
    return { reason: `its version is ${JSON.stringify(stored.version)}` };
  }
  const settings = fillDefaults(canonicalise(upToDate(stored, stored.version, host.platform)), host);
  if (hasShape(settings)) return { settings };
  return { reason: shapeProblems(hasShape.errors ?? []) };
}

function upToDate(stored: JsonObject, version: number, platform: Platform): JsonObject {
  return version < SCHEMA_VERSION ? migrate(stored, { platform }) : stored;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function newer(path: string, version: number): RdError {
  return new RdError(
    'ERR_SETTINGS_FILE',
    `${path} has settings of version ${version}, and this release knows versions up to ${SCHEMA_VERSION}`,
    { advice: 'Use the release that wrote it, or move the file away to begin with default settings.' },
  );
}
