import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { splitTag } from './image-reference.ts';
import { leafAt, removeLeaf, setLeaf } from './leaf-paths.ts';
import type { MigrateOptions } from './migrate.ts';
import { own, put } from './own.ts';

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
export const MIGRATION_STEPS: Readonly<Record<number, Step>> = {
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
  for (const [reference, wanted] of Object.entries(before)) {
    if (!wanted) continue;
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

/** Returns false, changing nothing, where a section is not an object: validation reports that. */
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

/** The logical negation, also of a string that stands for a boolean; anything else is left for validation to report. */
function opposite(value: JsonValue): JsonValue {
  if (typeof value === 'boolean') return !value;
  if (value === 'true') return false;
  if (value === 'false') return true;
  return value;
}
