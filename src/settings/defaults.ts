import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Platform, SettingField } from './field.ts';
import { objectOf } from './fields.ts';
import { leafAt } from './leaf-paths.ts';
import { copyOf, copyOfObject } from './own.ts';
import type { Settings } from './settings.gen.ts';

/** The inputs to the defaults. */
export interface Host {
  platform: Platform;
  /** `process.arch`. */
  arch: string;
  /** Kernel release, such as `23.1.0`; without it, the newest defaults. */
  osRelease?: string;
  /** Physical memory in bytes, for the first run. */
  memoryBytes?: number;
}

const GIB = 1024 ** 3;
const MAX_MEMORY_GIB = 6;

/**
 * Returns the settings of a first run. The virtual machine gets a quarter of the computer's memory, between 1 and 6
 * GiB, if `memoryBytes` is known and the platform has a machine; everything else comes from the schema.
 */
export function defaultSettings(host: Host): Settings {
  return objectOf((field) => firstRunValue(field, host)) as Settings;
}

/**
 * Completes stored settings: missing ones come from the schema, a list is one value and is never extended, and unknown
 * members are dropped. Values are not validated. If only one of the machine type and the mount type is stored, the
 * other becomes one that is compatible.
 */
export function fillDefaults(partial: JsonObject, host: Omit<Host, 'memoryBytes'>): Settings {
  const filled = objectOf((field) => {
    const stored = field.path === 'version' ? undefined : leafAt(partial, field.path);
    if (stored === undefined) return companionValue(field, partial, host) ?? defaultValue(field, host);
    return isObject(stored) ? withoutNulls(stored) : copyOf(stored);
  });
  return filled as Settings;
}

/** Returns a setting's default on a computer. */
function defaultValue(field: SettingField, host: Omit<Host, 'memoryBytes'>): JsonValue {
  const own = field.defaultByPlatform?.[host.platform];
  const since = field.defaultFromKernel?.[host.platform];
  if (own === undefined || (since !== undefined && kernelOf(host) < since)) return copyOf(field.default);
  return copyOf(own);
}

function firstRunValue(field: SettingField, host: Host): JsonValue {
  if (
    field.path === 'virtualMachine.memoryInGB' &&
    host.memoryBytes !== undefined &&
    field.platforms.includes(host.platform)
  ) {
    return Math.min(MAX_MEMORY_GIB, Math.max(field.min ?? 1, Math.round(host.memoryBytes / GIB / 4)));
  }
  return defaultValue(field, host);
}

/** The two macOS 14 defaults go together: one of them beside a stored value of the other would be invalid. */
function companionValue(
  field: SettingField,
  partial: JsonObject,
  host: Omit<Host, 'memoryBytes'>,
): JsonValue | undefined {
  if (host.platform !== 'darwin') return undefined;
  if (field.path === 'virtualMachine.mount.type' && leafAt(partial, 'virtualMachine.type') === 'qemu')
    return 'reverse-sshfs';
  if (field.path === 'virtualMachine.type') {
    const mount = leafAt(partial, 'virtualMachine.mount.type');
    if (mount === '9p') return 'qemu';
    if (mount === 'virtiofs') return 'vz';
  }
  return undefined;
}

function kernelOf({ osRelease }: Omit<Host, 'memoryBytes'>): number {
  const major = Number.parseInt(osRelease ?? '', 10);
  return Number.isNaN(major) ? Number.POSITIVE_INFINITY : major;
}

function withoutNulls(map: JsonObject): JsonObject {
  return copyOfObject(Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null)));
}
