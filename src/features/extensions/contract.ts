import type { CompanionContainers, ImageStore } from '../../drivers/driver.ts';
import type { Platform } from '../../settings/field.ts';
import type { ExtensionDirectory, ExtensionRecord } from './directory.ts';
import type { Fetch } from './registry-tags.ts';

/** The running engine. */
export interface RunningEngine {
  name: string;
  images?: ImageStore;
  companions?: CompanionContainers;
}

/** What extensions need from the service. */
export interface ExtensionsInput {
  files: ExtensionDirectory;
  platform: Platform;
  /** Undefined while none runs. */
  engine(): RunningEngine | undefined;
  /** The relevant settings, as of now. */
  settings(): { installed: Readonly<Record<string, string>>; allowed: { enabled: boolean; list: readonly string[] } };
  /** What locks `application.extensions.installed`, for a sentence; undefined when unlocked. */
  lockedBy(): string | undefined;
  /** Saves the map of installed extensions durably after `change`. */
  record(change: (installed: Record<string, string>) => Record<string, string>): Promise<void>;
  fetch: Fetch;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, values?: Record<string, unknown>): void;
}

/** The result of an installation. `leftOut` lists unsupported requests of the extension as clauses. */
export type Installed = { outcome: 'installed' | 'unchanged'; version: string; leftOut: readonly string[] };

/** Extensions of this service. Changes are serialized. */
export interface Extensions {
  /** True once an engine has run. */
  readonly ready: boolean;
  /** By image name. Damaged extensions are omitted and logged. */
  list(): Promise<Record<string, ExtensionRecord>>;
  /** `id` is an image with or without a tag. Throws the refusals of `refusals.ts`, `ERR_NOT_READY`, `ERR_SETTING_LOCKED`. */
  install(id: string): Promise<Installed>;
  /** Requires that an engine has run once. Throws `ERR_NOT_READY`, `ERR_SETTING_LOCKED`, `ERR_IO`. */
  uninstall(id: string): Promise<'removed' | 'unchanged'>;
  /** Called when an engine has come up: reconciles extensions with the settings in the background. */
  engineIsUp(): void;
  /** Resolves when idle. */
  idle(): Promise<void>;
  /** Cancels current work, which leaves the old extension or none, and waits for that. */
  close(): Promise<void>;
}
