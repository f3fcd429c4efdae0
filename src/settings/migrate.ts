import { RdError } from '../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Platform } from './field.ts';
import { splitTag } from './image-reference.ts';
import { leafAt, removeLeaf, setLeaf } from './leaf-paths.ts';
import { copyOfObject, own, put } from './own.ts';
import { SCHEMA_VERSION } from './settings.gen.ts';

export interface MigrateOptions {
  platform: Platform;
  /** The document is a locked profile: some steps freeze later features. */
  locked?: boolean;
  /** Adds only values derived from a field of the input. */
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

/** Migrates a document and returns the origin of each value, so that problems can be reported at their source. */
export function migrateWithOrigins(input: JsonObject, options: MigrateOptions): Migration {
  const { version } = input;
  const problem = versionProblem(version);
  if (problem !== undefined || typeof version !== 'number') {
    throw new RdError('ERR_SETTINGS_INVALID', problem ?? 'the settings have no version');
  }
  const document = copyOfObject(input);
  const origins = new Map<string, string>();
  const context = { document, options, moved: (from: string, to: string) => recordMove(origins, from, to) };
  const target = Math.min(options.target ?? SCHEMA_VERSION, SCHEMA_VERSION);
  for (let step = version; step < target; step++) MIGRATION_STEPS[step]?.(context);
  document.version = Math.max(version, target);
  return { document, origins };
}

/** Returns the API's message for an invalid `version`, or undefined for a valid one. */
export function versionProblem(value: unknown): string | undefined {
  const required = 'updating settings requires specifying an API version, but';
  if (value === undefined) return `${required} no version was specified`;
  // A fraction would match no step and pass as the newest version.
  if (typeof value !== 'number' || (!Number.isInteger(value) && value > 0)) {
    return `${required} "${valueText(value)}" is not a proper config version`;
  }
  if (value <= 0) return `${required} "${value}" is not a positive number`;
  if (value > SCHEMA_VERSION) return 'Changing field "version" via the API isn\'t supported.';
  return undefined;
}

/** Returns the original dotted path of a path in the migrated document; `path` itself if nothing moved. */
export function originOf(origins: ReadonlyMap<string, string>, path: string): string {
  for (let prefix = path; ; prefix = prefix.slice(0, prefix.lastIndexOf('.'))) {
    const from = origins.get(prefix);
    if (from !== undefined) return from + path.slice(prefix.length);
    if (!prefix.includes('.')) return path;
  }
}

/** Returns the original names of a pointer in the migrated document. The pointer may end in a map or list entry. */
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

function valueText(value: unknown): string {
  return isObject(value) || Array.isArray(value) ? JSON.stringify(value satisfies JsonValue) : String(value);
}

/** The input of a step. `document` is changed in place. */
interface MigrationContext {
  document: JsonObject;
  options: MigrateOptions;
  moved: (from: string, to: string) => void;
}
type Step = (context: MigrationContext) => void;

const VM = 'experimental.virtualMachine';

/**
 * Keyed by the version that a step starts from. A version without a step only added settings, which come from the
 * defaults. A move acts only when the old path exists; then the old value overrides one at the new path.
 */
const MIGRATION_STEPS: Readonly<Record<number, Step>> = {
  1: (context) => remove(context, 'kubernetes.rancherMode'),
  4: fromFlatShape,
  5: fromTopLevelWindow,
  6: extensionsByName,
  7: withoutNotset,
  8: (context) => move(context, 'extensions', 'application.extensions.installed'),
  9: trimNoproxy,
  10: freezeWebAssembly,
  11: (context) => {
    remove(context, `${VM}.socketVMNet`);
    removeIfEmpty(context, VM);
  },
  12: (context) => {
    // The value is removed two steps later; only the section remains, which a partial document does not need.
    if (!context.options.partial) set(context, `${VM}.networkingTunnel`, true);
  },
  13: (context) => {
    remove(context, 'virtualMachine.hostResolver');
    remove(context, `${VM}.networkingTunnel`);
  },
  14: (context) => {
    move(context, `${VM}.type`, 'virtualMachine.type');
    move(context, `${VM}.useRosetta`, 'virtualMachine.useRosetta');
    removeIfEmpty(context, VM);
  },
  15: (context) => move(context, `${VM}.mount.type`, 'virtualMachine.mount.type'),
  16: addStorageDriver,
};

function fromFlatShape(context: MigrationContext): void {
  move(context, 'kubernetes.suppressSudo', 'application.adminAccess', opposite);
  move(context, 'debug', 'application.debug');
  move(context, 'pathManagementStrategy', 'application.pathManagementStrategy');
  move(context, 'telemetry', 'application.telemetry.enabled');
  move(context, 'updater', 'application.updater.enabled');
  move(context, 'kubernetes.containerEngine', 'containerEngine.name');
  move(context, 'kubernetes.experimental.socketVMNet', `${VM}.socketVMNet`);
  move(context, 'kubernetes.hostResolver', 'virtualMachine.hostResolver');
  move(context, 'kubernetes.memoryInGB', 'virtualMachine.memoryInGB');
  move(context, 'kubernetes.numberCPUs', 'virtualMachine.numberCPUs');
  move(context, 'kubernetes.WSLIntegrations', 'WSL.integrations');
  remove(context, 'kubernetes.checkForExistingKimBuilder');
  remove(context, 'kubernetes.experimental');
}

function fromTopLevelWindow(context: MigrationContext): void {
  for (const name of ['autoStart', 'hideNotificationIcon', 'startInBackground', 'window']) {
    move(context, name, `application.${name}`);
  }
  move(context, 'containerEngine.imageAllowList', 'containerEngine.allowedImages');
  move(context, 'virtualMachine.experimental.socketVMNet', `${VM}.socketVMNet`);
  removeIfEmpty(context, 'virtualMachine.experimental');
}

/** Turns `{ 'name:tag': true }` into `{ name: 'tag' }`. Anything but a map is left for validation to report. */
function extensionsByName({ document }: MigrationContext): void {
  const before = own(document, 'extensions');
  if (!isObject(before)) return;
  const after: JsonObject = {};
  for (const [reference, isInstalled] of Object.entries(before)) {
    if (!isInstalled) continue;
    const { name, tag = 'latest' } = splitTag(reference);
    put(after, name, tag);
  }
  put(document, 'extensions', after);
}

function withoutNotset({ document, options }: MigrationContext): void {
  const path = 'application.pathManagementStrategy';
  if (leafAt(document, path) === 'notset') setLeaf(document, path, options.platform === 'win32' ? 'manual' : 'rcfiles');
}

function trimNoproxy({ document }: MigrationContext): void {
  const path = `${VM}.proxy.noproxy`;
  const list = leafAt(document, path);
  if (!Array.isArray(list)) return;
  setLeaf(
    document,
    path,
    list.map((entry) => (typeof entry === 'string' ? entry.trim() : entry)).filter((entry) => entry !== ''),
  );
}

/** WebAssembly appeared in version 11: an older locked profile does not permit enabling it. */
function freezeWebAssembly(context: MigrationContext): void {
  const path = 'experimental.containerEngine.webAssembly.enabled';
  if (context.options.locked && leafAt(context.document, path) === undefined) set(context, path, false);
}

function addStorageDriver(context: MigrationContext): void {
  const { document, options } = context;
  const path = 'containerEngine.mobyStorageDriver';
  if (!options.locked && !options.partial && leafAt(document, path) === undefined) set(context, path, 'auto');
}

function move(context: MigrationContext, from: string, to: string, change = (value: JsonValue) => value): void {
  const { document, moved } = context;
  const value = leafAt(document, from);
  if (value === undefined) return;
  removeLeaf(document, from);
  if (set(context, to, change(value))) moved(from, to);
}

/** Sets a value in the document. Returns false, changing nothing, if a parent is not an object, which validation reports. */
function set({ document }: MigrationContext, path: string, value: JsonValue): boolean {
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const section = leafAt(document, path.slice(0, dot));
    if (section === undefined) break;
    if (!isObject(section)) return false;
  }
  setLeaf(document, path, value);
  return true;
}

function remove({ document }: MigrationContext, path: string): void {
  removeLeaf(document, path);
}

function removeIfEmpty({ document }: MigrationContext, path: string): void {
  const value = leafAt(document, path);
  if (isObject(value) && Object.keys(value).length === 0) removeLeaf(document, path);
}

/** Returns the logical negation, also of a string that stands for a boolean; anything else is left for validation to report. */
function opposite(value: JsonValue): JsonValue {
  if (typeof value === 'boolean') return !value;
  if (value === 'true') return false;
  if (value === 'false') return true;
  return value;
}
