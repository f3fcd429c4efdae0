import type { JsonObject } from '../json.ts';
import type { Platform } from './field.ts';
import type { Settings } from './settings.gen.ts';

/** Why a value is refused. */
export type IssueCode =
  /** A value where a section belongs. */
  | 'section'
  | 'type'
  | 'range'
  | 'enum'
  | 'format'
  | 'duplicates'
  | 'version'
  /** The setting cannot be changed on this platform. */
  | 'platform'
  /** The value does not go together with another setting or with this computer. */
  | 'conflict'
  | 'decrease'
  | 'kubernetes-version'
  | 'locked';

/** What a value breaks. */
export interface Problem {
  code: IssueCode;
  /** The line of the wire. */
  message: string;
  /** Ends a launch that carries the value as an option; a call answers 400 either way. */
  fatal: boolean;
  /** What would be right, as a phrase. */
  expected?: string;
  /** Key of the map entry or index of the list item. */
  entry?: string;
}

/** A problem with its place in the payload. */
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

/** What validation needs to know beside the payload. */
export interface ValidateContext {
  /** The settings that the payload would change. */
  current: Settings;
  platform: Platform;
  /**
   * A value that is wrong by itself is reported as such even where the platform or another setting forbids the change anyway,
   * as someone who wrote a document for several computers wants it. The wire names only the prohibition.
   */
  valuesFirst?: boolean;
  /** `process.arch`. */
  arch: string;
  /** Product version of macOS, such as `14.5`; without it rules about old releases do not apply. */
  osVersion?: string;
  /** Lock record (`lockRecord`). */
  locked?: JsonObject;
  /** Size of the disk of the machine, 0 while there is none; absent where that is not known: then it is that of the settings. */
  diskBytes?: number;
  /** Cluster versions that are offered; absent while none is known. */
  kubernetesVersions?: readonly string[];
}
