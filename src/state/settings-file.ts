import { chmod, readlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../errors.ts';
import { defined, isObject, isTooDeep, type JsonObject, type JsonValue, MOST_LEVELS, parseJson } from '../json.ts';
import { type FileOperations, fileOperations, readIfThere, writeFileAtomic } from '../os/atomic-file.ts';
import { ioError } from '../os/io-error.ts';
import { shellWord } from '../os/program.ts';
import { userHome } from '../os/user-directories.ts';
import { canonicalize } from '../settings/canonical.ts';
import { defaultSettings, fillDefaults } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { formatFinding, type IssueCode } from '../settings/issue.ts';
import { migrate, versionProblem } from '../settings/migrate.ts';
import { SCHEMA_VERSION, type Settings } from '../settings/settings.gen.ts';
import { looksLikeJson } from '../settings/source-text.ts';
import { unknownKeys, validate } from '../settings/validate.ts';
import { validate as hasShape } from '../settings/validators/settings-v19.gen.js';
import { fileBehind, isLink, replaceableFacts } from './linked-file.ts';

/** Host facts that affect parsing settings. */
export interface FileHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
}

export type LoadedSettings =
  /** There is no file: the first run, or it was deleted. */
  | { kind: 'missing' }
  /** `ignored`: dotted paths of unknown settings. */
  | { kind: 'loaded'; settings: Settings; ignored: string[] }
  /** Not JSON, and not a person's editing mistake: cut off, empty, or other content. */
  | { kind: 'garbled' };

/** Problems of the settings themselves. Host- or driver-specific problems do not invalidate a file. */
const OWN_MISTAKES: ReadonlySet<string> = new Set([
  'section',
  'type',
  'range',
  'enum',
  'format',
  'duplicates',
] satisfies IssueCode[]);

/**
 * Reads the settings file: migrated, canonical, complete. Changes nothing on the disk.
 * @throws RdError `ERR_SETTINGS_FILE` when the file cannot be read, was written by a newer release, or was edited and has errors: it is deliberate,
 * and replacing one bad value with a default could disable a protection. `details` lists the errors with their positions: all of them for JSON, the
 * first for a text that is not JSON.
 */
export async function loadSettings(path: string, previous: string, host: FileHost): Promise<LoadedSettings> {
  const stored = await readStored(path);
  if (stored.kind !== 'json') return stored;
  const { value, text } = stored;
  const read = interpret(value, host);
  if (read && !(await hasDuplicates(path, text, value))) return { kind: 'loaded', ...read };
  if (isObject(value) && isNewer(value.version)) throw newer(path, Number(value.version));
  throw await invalidSettings(path, previous, stored, host);
}

/** Returns the settings in a file, or undefined if it is missing or unusable. */
export async function usableSettings(path: string, host: FileHost): Promise<Settings | undefined> {
  const stored = await readStored(path).catch(() => undefined);
  return stored?.kind === 'json' ? interpret(stored.value, host)?.settings : undefined;
}

/** Returns the settings in a record of ours, which an earlier release may have written, or undefined if they are unusable. */
export function parseRecordedSettings(value: JsonValue, host: FileHost): Settings | undefined {
  return interpret(value, host)?.settings;
}

/**
 * Writes settings durably; keeps the previous file as `previous`, if named. A link stays: its target is replaced, and keeps its mode.
 * @throws RdError `ERR_IO`, including the errors of `settingsTarget`.
 */
export async function saveSettings(
  path: string,
  previous: string | undefined,
  settings: JsonObject | Settings,
  operations: FileOperations = fileOperations,
): Promise<void> {
  const { file, mode } = await settingsTarget(path);
  const exact: FileOperations = {
    ...operations,
    async writeNew(temporary, data, bits) {
      await operations.writeNew(temporary, data, bits);
      // The mask of this process may be stricter than the mode of the file.
      await chmod(temporary, bits);
    },
  };
  await writeFileAtomic(file, `${JSON.stringify(settings, null, 2)}\n`, {
    ...defined({ previous }),
    ...(mode === undefined ? { operations } : { mode, operations: exact }),
  });
}

/**
 * Returns the file that a write of the settings replaces: the settings file, or the target of its link, with the mode to keep. The target has to be
 * below the user's home, or below the directory that all our files are in.
 * @throws RdError `ERR_IO` for a link that is not followed, or whose target is not replaced.
 */
export async function settingsTarget(path: string): Promise<{ file: string; mode?: number }> {
  if (!(await isLink(path))) return { file: path };
  const file = await fileBehind(path, { within: [userHome(process.env), dirname(dirname(path))] });
  const facts = await replaceableFacts(file);
  return { file, ...(facts ? { mode: Number(facts.mode & 0o777n) } : {}) };
}

type Stored = { kind: 'missing' } | { kind: 'garbled' } | { kind: 'json'; text: string; value: JsonValue };

async function readStored(path: string): Promise<Stored> {
  let text: string | undefined;
  try {
    // Users who keep their settings elsewhere put a link here.
    text = await readIfThere(path, { follow: true });
  } catch (cause) {
    throw ioError('read the settings file', path, cause, 'ERR_SETTINGS_FILE');
  }
  if (text === undefined) {
    if (await isLink(path)) throw await dangling(path);
    return { kind: 'missing' };
  }
  // Windows editors may add a byte order mark.
  const value = parseJson(text.replace(/^\uFEFF/, ''));
  if (value === undefined) {
    const mistake = await editingMistake(path, text);
    if (mistake !== undefined) throw wrongJson(path, mistake);
    return { kind: 'garbled' };
  }
  // Everything below is flushed level by level.
  if (isTooDeep(text)) throw tooDeep(path);
  return { kind: 'json', text, value };
}

/** Returns the first error of a text that a person has edited, with its position, or undefined for one that was cut off or is other content. */
async function editingMistake(file: string, text: string): Promise<string | undefined> {
  if (!looksLikeJson(text)) return undefined;
  const { jsonProblem } = await import('../settings/json-problem.ts');
  const problem = jsonProblem(text);
  if (!problem || problem.isCut) return undefined;
  const { line, column, message } = problem;
  return formatFinding({ file, line, column, pointer: '', message });
}

function wrongJson(path: string, mistake: string): RdError {
  return new RdError('ERR_SETTINGS_FILE', `the settings file ${path} is not JSON; nothing was started or changed`, {
    details: [mistake],
    advice: 'Correct it, or remove it to begin with the settings from before the last change.',
  });
}

function interpret(stored: JsonValue, host: FileHost): { settings: Settings; ignored: string[] } | undefined {
  if (!isObject(stored) || versionProblem(stored.version) !== undefined) return undefined;
  const canonical = canonicalize(upToDate(stored, Number(stored.version), host.platform));
  const settings = fillDefaults(canonical, host);
  const issues = validate(canonical, { platform: host.platform, arch: host.arch, current: defaultSettings(host) });
  if (issues.some(({ code }) => OWN_MISTAKES.has(code)) || !hasShape(settings)) return undefined;
  return { settings, ignored: unknownKeys(canonical).map(({ path }) => path) };
}

function upToDate(stored: JsonObject, version: number, platform: Platform): JsonObject {
  return version < SCHEMA_VERSION ? migrate(stored, { platform }) : stored;
}

/** True for duplicate keys, which may mean one thing to a person and another to a parser. */
async function hasDuplicates(path: string, text: string, value: JsonValue): Promise<boolean> {
  // Our own formatting has none, and the search costs more than the rest together.
  if (text === `${JSON.stringify(value, null, 2)}\n`) return false;
  const { documentMistakes } = await import('./settings-mistakes.ts');
  return documentMistakes(path, text).length > 0;
}

async function invalidSettings(
  path: string,
  previous: string,
  { text, value }: { text: string; value: JsonValue },
  host: FileHost,
): Promise<RdError> {
  const { settingsMistakes } = await import('./settings-mistakes.ts');
  const canRestore = (await usableSettings(previous, host)) !== undefined;
  const way = canRestore ? `, or go back with: ${moveCommand(previous, path, host)}` : '';
  return new RdError('ERR_SETTINGS_FILE', `the settings file ${path} has errors; nothing was started or changed`, {
    details: await settingsMistakes(path, text, value, { host, counts: (code) => OWN_MISTAKES.has(code) }),
    // A missing file with an intact copy is replaced by it.
    advice: `Correct it, or remove it${canRestore ? ` and ${previous}` : ''} to begin with default settings${way}`,
  });
}

function moveCommand(from: string, to: string, { platform }: FileHost): string {
  if (platform === 'win32') return `move /Y "${from}" "${to}"`;
  return `mv ${shellWord(from)} ${shellWord(to)}`;
}

/** Returns the error for a dangling link. It is not treated as missing: defaults in its place could lift a protection. */
async function dangling(path: string): Promise<RdError> {
  const target = await readlink(path).catch(() => 'nothing');
  return new RdError('ERR_SETTINGS_FILE', `the settings file ${path} is a link to ${target}, which does not exist`, {
    advice: 'Put the file back, or remove the link; nothing was started or changed.',
  });
}

function tooDeep(path: string): RdError {
  return new RdError('ERR_SETTINGS_FILE', `the settings file ${path} nests deeper than ${MOST_LEVELS} levels`, {
    advice: 'Fix it, or move it away; nothing was started or changed.',
  });
}

function isNewer(version: JsonValue | undefined): boolean {
  return typeof version === 'number' && Number.isInteger(version) && version > SCHEMA_VERSION;
}

function newer(path: string, version: number): RdError {
  return new RdError(
    'ERR_SETTINGS_FILE',
    `${path} has settings version ${version}, but this release supports versions up to ${SCHEMA_VERSION}`,
    { advice: 'Use the release that wrote it, or move the file away.' },
  );
}
