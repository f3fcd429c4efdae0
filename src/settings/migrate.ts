import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Platform } from './field.ts';
import { MIGRATION_STEPS } from './migration-steps.ts';
import { copyOfObject } from './own.ts';
import { SCHEMA_VERSION } from './settings.gen.ts';

export interface MigrateOptions {
  platform: Platform;
  /** A locked profile: features that came after it stay frozen where the steps say so. */
  locked?: boolean;
  /** Adds nothing that no field of the input caused. */
  partial?: boolean;
  /** Version to stop at, as an older release does; the newest unless told. An input beyond it stays as it is. */
  target?: number;
}

/** A migrated document, and where each moved value stood in the input, by dotted path. */
export interface Migration {
  document: JsonObject;
  origins: ReadonlyMap<string, string>;
}

/**
 * A copy of a document of version 1 to 19 in the shape of version 19, or of `target`. Throws `ERR_SETTINGS_INVALID` for a version
 * for which `versionProblem` has an answer. Defaults are not filled in.
 */
export function migrate(document: JsonObject, options: MigrateOptions): JsonObject {
  return migrateWithOrigins(document, options).document;
}

/** As `migrate`, and tells where values came from, so that a problem can be shown where it was written. */
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

/** Why a `version` cannot be accepted, in the words of the wire; `undefined` when it can. */
export function versionProblem(value: unknown): string | undefined {
  const required = 'updating settings requires specifying an API version, but';
  if (value === undefined) return `${required} no version was specified`;
  // A fraction would run no step at all and pass as the newest version.
  if (typeof value !== 'number' || (!Number.isInteger(value) && value > 0)) {
    return `${required} "${shown(value)}" is not a proper config version`;
  }
  if (value <= 0) return `${required} "${value}" is not a positive number`;
  if (value > SCHEMA_VERSION) return 'Changing field "version" via the API isn\'t supported.';
  return undefined;
}

/** The dotted path in the input of a dotted path in the migrated document; `path` itself where nothing was moved. */
export function originOf(origins: ReadonlyMap<string, string>, path: string): string {
  for (let prefix = path; ; prefix = prefix.slice(0, prefix.lastIndexOf('.'))) {
    const from = origins.get(prefix);
    if (from !== undefined) return from + path.slice(prefix.length);
    if (!prefix.includes('.')) return path;
  }
}

/** As `originOf` for the names of a pointer, where the last may be those of an entry of a map or a list. */
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
