import type { JsonValue } from '../json.ts';
import type { SettingPath } from './settings.gen.ts';

export type Platform = 'darwin' | 'linux' | 'win32';
export const PLATFORMS: readonly Platform[] = ['darwin', 'linux', 'win32'];
/** What people call them. */
export const PLATFORM_NAMES: Readonly<Record<Platform, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };

/** `macOS`; a platform that is none of ours by its own name. */
export function platformText(platform: NodeJS.Platform): string {
  return Object.entries(PLATFORM_NAMES).find(([name]) => name === platform)?.[1] ?? platform;
}

export type FieldType = 'boolean' | 'integer' | 'string' | 'string[]' | 'map<string,boolean>' | 'map<string,string>';

/** Default effect of a change on a running backend of each kind; exceptions are functions in `src/plan/severity.ts`. */
export type Effect = 'none' | 'live' | 'restart' | 'restart-or-reset';

/** The command-line flag of a setting. */
export interface SettingFlag {
  /** Without dashes: `container-engine.name`. */
  name: string;
  /** Hidden names with the same meaning, also of older releases. */
  aliases: readonly string[];
  /** Where the flag is available; empty: accepted by the parser and always refused. */
  platforms: readonly Platform[];
  hidden: boolean;
  /** Values that the tool accepts, where narrower than any. */
  values?: readonly string[];
}

/** One setting as `schemas/settings/v19.json` declares it. */
export interface Field {
  path: SettingPath;
  type: FieldType;
  /** The default on every platform, unless `defaultByPlatform` has an entry. */
  default: JsonValue;
  defaultByPlatform?: Readonly<Partial<Record<Platform, JsonValue>>>;
  /** Major kernel release from which the platform's own default holds; `default` before. Darwin 23 is macOS 14. */
  defaultFromKernel?: Readonly<Partial<Record<Platform, number>>>;
  enum?: readonly string[];
  /** Accepted spellings that are rewritten before anything else looks at the value. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  unit?: string;
  /** Name of a grammar of the settings facts (section 3.5). */
  format?: string;
  /** Host platforms on which a change is accepted. */
  platforms: readonly Platform[];
  /** `lima`: darwin and linux; `wsl`: win32. */
  effect: { lima: Effect; wsl: Effect };
  /** Absent for `version`. */
  flag?: SettingFlag;
  lockable: boolean;
  sensitive: boolean;
  /** Describes one computer rather than what somebody wants: left out of exports of the settings in force. */
  machineOnly?: true;
  /** Schema version in which this exact path first appears. */
  since: number;
  description: string;
}
