import type { JsonObject } from '../json.ts';
import type { Platform } from './field.ts';
import type { Settings } from './settings.gen.ts';

/** Why a value is rejected. */
export type IssueCode =
  /** A value in place of a section. */
  | 'section'
  | 'type'
  | 'range'
  | 'enum'
  | 'format'
  | 'duplicates'
  | 'version'
  /** The setting cannot be changed on this platform. */
  | 'platform'
  /** The value conflicts with another setting or with this computer. */
  | 'conflict'
  | 'decrease'
  | 'kubernetes-version'
  | 'locked';

/** A rule that a value breaks. */
export interface Problem {
  code: IssueCode;
  /** The line of the API's reply. */
  message: string;
  /** Fails a launch with this value as an option; the API replies 400 either way. */
  fatal: boolean;
  /** The accepted values, as a phrase. */
  expected?: string;
  /** Key of the map entry or index of the list item. */
  entry?: string;
}

/** A problem with its location in the payload. */
export interface Issue {
  code: IssueCode;
  /** RFC 6901 pointer into the payload. */
  pointer: string;
  /** Dotted path of the setting or section. */
  path: string;
  message: string;
  fatal: boolean;
  expected?: string;
}

/** The inputs to validation beside the payload. */
export interface ValidateContext {
  /** The settings that the payload changes. */
  current: Settings;
  platform: Platform;
  /**
   * Report an invalid value as such even where the platform or another setting forbids the change anyway, for authors
   * of documents for several computers. The API reports only the prohibition.
   */
  valuesFirst?: boolean;
  /** `process.arch`. */
  arch: string;
  /** Product version of macOS, such as `14.5`; without it rules about old releases do not apply. */
  osVersion?: string;
  /** Lock record (`lockRecord`). */
  locked?: JsonObject;
  /** Size of the machine's disk, 0 without one; if absent, that of the settings. */
  diskBytes?: number;
  /** Available cluster versions; absent while unknown. */
  kubernetesVersions?: readonly string[];
}
