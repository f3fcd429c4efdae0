import type { CompanionContainers, ImageStore } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import type { Origin } from '../../plan/history.ts';
import type { Platform } from '../../settings/field.ts';
import type { ExtensionDirectory, ExtensionRecord } from './directory.ts';
import type { Fetch } from './registry-tags.ts';

/** The running engine. */
export interface RunningEngine {
  name: string;
  images?: ImageStore;
  companions?: CompanionContainers;
}

/** The parts of the service that extensions use. */
export interface ExtensionsInput {
  files: ExtensionDirectory;
  platform: Platform;
  /** Returns the running engine; undefined while there is none. */
  engine(): RunningEngine | undefined;
  /** Returns the relevant settings as of now. */
  settings(): { installed: Readonly<Record<string, string>>; allowed: { enabled: boolean; list: readonly string[] } };
  /** Returns the source of a lock on `application.extensions.installed`, for a sentence; undefined when unlocked. */
  lockedBy(): string | undefined;
  /** Saves the map of installed extensions durably after `change`. `origin` is absent if the service itself makes the change. */
  record(change: (installed: Record<string, string>) => Record<string, string>, origin?: Origin): Promise<void>;
  fetch: Fetch;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, values?: Record<string, unknown>): void;
}

/** The result of an installation. `leftOut` lists unsupported requests of the extension as clauses. */
export type Installed = { outcome: 'installed' | 'unchanged'; version: string; leftOut: readonly string[] };

/** Extensions of this service. Changes are serialized. */
export interface Extensions {
  /** True once an engine has run. */
  readonly ready: boolean;
  /** Returns the extensions by image name. Damaged ones are omitted and logged. */
  list(): Promise<Record<string, ExtensionRecord>>;
  /** Installs an extension. `id` is an image with or without a tag. Throws the refusals below, `ERR_NOT_READY`, `ERR_SETTING_LOCKED`. */
  install(id: string, origin?: Origin): Promise<Installed>;
  /** Uninstalls an extension; an engine must have run once. Throws `ERR_NOT_READY`, `ERR_SETTING_LOCKED`, `ERR_IO`. */
  uninstall(id: string, origin?: Origin): Promise<'removed' | 'unchanged'>;
  /** Called when an engine has come up. Reconciles extensions with the settings in the background. */
  engineIsUp(): void;
  /** Resolves when idle. */
  idle(): Promise<void>;
  /** Cancels current work, which leaves the old extension or none, and waits for its end. */
  close(): Promise<void>;
}

/**
 * Returns a refusal of the compatible API: its message is the body that scripts match, and its cause is the actual error. `id` is the image as
 * requested.
 */
export function invalidMetadata(id: string, cause: unknown): RdError {
  return new RdError('ERR_EXTENSION_INVALID', `The image ${id} has invalid extension metadata`, { cause });
}

/** Returns a refusal. `what` is one of the wire texts: `Could not copy icon file /icon.svg`. */
export function installError(id: string, what: string, cause: unknown): RdError {
  return new RdError('ERR_EXTENSION_INVALID', `The image ${id} failed to install: ${what}`, { cause });
}

export function notAllowedError(id: string, why: string, advice: string): RdError {
  return new RdError('ERR_FORBIDDEN', `The image ${id} is not an allowed extension`, {
    cause: new RdError('ERR_FORBIDDEN', why, { advice }),
  });
}

/** Returns the refusal for an error without a specific response. */
export function internalError(cause: unknown): RdError {
  return new RdError('ERR_INTERNAL', 'Internal Server Error', { cause });
}

/** Returns the readable error behind a refusal; undefined if the message suffices. */
export function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof RdError) || !(error.cause instanceof Error)) return undefined;
  const { cause } = error;
  const advice = cause instanceof RdError && cause.advice !== undefined ? `. ${cause.advice}` : '';
  return `${cause.message}${advice}`;
}
