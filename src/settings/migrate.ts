import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Platform } from './field.ts';
import { MIGRATION_STEPS } from './migration-steps.ts';
import { copyOfObject } from './own.ts';
import { SCHEMA_VERSION } from './settings.gen.ts';

export interface MigrateOptions {
  platform: Platform;
  /** A locked profile: later features are frozen where the steps say so. */
  locked?: boolean;
  /** Adds only what a field of the input causes. */
  partial?: boolean;
  /** Version to stop at, like an older release; the newest by default. An input beyond it is unchanged. */
  target?: number;
}

/** A migrated document, and the original dotted paths of moved values. */
export interface Migration {
  document: JsonObject;
  origins: ReadonlyMap<string, string>;
}

/**
 * Migrates a copy of a document of version 1 to 19 to version 19, or to `target`. Throws `ERR_SETTINGS_INVALID` for a
 * version that `versionProblem` rejects. Defaults are not filled in.
 */
export function migrate(document: JsonObject, options: MigrateOptions): JsonObject {
  return migrateWithOrigins(document, options).document;
}

/** Like `migrate`, with the origin of each value, so that problems can be reported at their source. */
export function migrateWithOrigins(input: JsonObject, options: MigrateOptions): Migration {
  const { version } = input;
  const problem = versionProblem(version);
  if (problem !== undefined || typeof version !== 'number') {
    throw new RdError('ERR_SETTINGS_INVALID', problem ?? 'the settings carry no version');
  }
  const document = copyOfObject(input);
  const origins = new Map<string, string>();
  const context = { document, options, moved: (from: string, to: string) => recordMove(origins, from, to) };
  const target = Math.min(options.target ?? SCHEMA_VERSION, SCHEMA_VERSION);
  for (let step = version; step < target; step++) MIGRATION_STEPS[step]?.(context);
  document.version = Math.max(version, target);
  return { document, origins };
}

/** The API's message for an invalid `version`; `undefined` for a valid one. */
export function versionProblem(value: unknown): string | undefined {
  const required = 'updating settings requires specifying an API version, but';
  if (value === undefined) return `${required} no version was specified`;
  // A fraction would match no step and pass as the newest version.
  if (typeof value !== 'number' || (!Number.isInteger(value) && value > 0)) {
    return `${required} "${shown(value)}" is not a proper config version`;
  }
  if (value <= 0) return `${required} "${value}" is not a positive number`;
  if (value > SCHEMA_VERSION) return 'Changing field "version" via the API isn\'t supported.';
  return undefined;
}

/** The original dotted path of a path in the migrated document; `path` itself where nothing moved. */
export function originOf(origins: ReadonlyMap<string, string>, path: string): string {
  for (let prefix = path; ; prefix = prefix.slice(0, prefix.lastIndexOf('.'))) {
    const from = origins.get(prefix);
    if (from !== undefined) return from + path.slice(prefix.length);
    if (!prefix.includes('.')) return path;
  }
}

/** Like `originOf` for the names of a pointer, which may end in a map or list entry. */
export function namesBefore(origins: ReadonlyMap<string, string>, names: readonly string[]): string[] {
  for (let length = names.length; length > 0; length -= 1) {
    const from = origins.get(names.slice(0, length).join('.'));
    if (from !== undefined) return [...from.split('.'), ...names.slice(length)];
  }
  return [...names];
}

function recordMove(origins: Map<string, string>, from: string, to: string): void {
  const first = originOf(origins, from);
  origins.delete(from);
  origins.set(to, first);
}

function shown(value: unknown): string {
  return isObject(value) || Array.isArray(value) ? JSON.stringify(value satisfies JsonValue) : String(value);
}
