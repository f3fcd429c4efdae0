import type { CompanionContainers, ImageStore } from '../drivers/driver.ts';
import type { Platform } from '../settings/field.ts';
import type { ExtensionDirectory, ExtensionRecord } from './directory.ts';
import type { Fetch } from './registry-tags.ts';

/** The engine that runs now. */
export interface RunningEngine {
  name: string;
  images?: ImageStore;
  companions?: CompanionContainers;
}

/** What extensions need of the service around them. */
export interface ExtensionsInput {
  files: ExtensionDirectory;
  platform: Platform;
  /** Undefined while none runs. */
  engine(): RunningEngine | undefined;
  /** The settings that matter, as they are now. */
  settings(): { installed: Readonly<Record<string, string>>; allowed: { enabled: boolean; list: readonly string[] } };
  /** Who holds `application.extensions.installed`, for a sentence; undefined when nobody does. */
  lockedBy(): string | undefined;
  /** Makes the map of installed extensions durable after `change`. */
  record(change: (installed: Record<string, string>) => Record<string, string>): Promise<void>;
  fetch: Fetch;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, values?: Record<string, unknown>): void;
}

/** What an installation did. `leftOut` lists, as clauses, what the extension asks for and does not get. */
export type Installed = { outcome: 'installed' | 'unchanged'; version: string; leftOut: readonly string[] };

/** Extensions of this service. Changes take turns. */
export interface Extensions {
  /** True from the first time on that an engine ran. */
  readonly ready: boolean;
  /** By image name. An extension whose files are damaged is left out and logged. */
  list(): Promise<Record<string, ExtensionRecord>>;
  /** `id` is an image with or without a tag. Throws the refusals of `refusals.ts`, `ERR_NOT_READY`, `ERR_SETTING_LOCKED`. */
  install(id: string): Promise<Installed>;
  /** Needs no engine once one ran. Throws `ERR_NOT_READY`, `ERR_SETTING_LOCKED`, `ERR_IO`. */
  uninstall(id: string): Promise<'removed' | 'unchanged'>;
  /** Tells that an engine has come up: what is installed is brought in line with the settings in the background. */
  engineIsUp(): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
  /** Calls off what is under way, which leaves the old extension or none, and waits for that. */
  close(): Promise<void>;
}
