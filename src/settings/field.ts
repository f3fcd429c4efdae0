import type { JsonValue } from '../json.ts';
import type { SettingPath } from './settings.gen.ts';

export type Platform = 'darwin' | 'linux' | 'win32';
export const PLATFORMS: readonly Platform[] = ['darwin', 'linux', 'win32'];
/** Display names. */
export const PLATFORM_NAMES: Readonly<Record<Platform, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };

/** `macOS`; unsupported platforms keep their own name. */
export function platformText(platform: NodeJS.Platform): string {
  return Object.entries(PLATFORM_NAMES).find(([name]) => name === platform)?.[1] ?? platform;
}

export type FieldType = 'boolean' | 'integer' | 'string' | 'string[]' | 'map<string,boolean>' | 'map<string,string>';

/** Default effect of a change on each kind of running backend; exceptions are functions in `src/plan/severity.ts`. */
export type Effect = 'none' | 'live' | 'restart' | 'restart-or-reset';

/** The command-line flag of a setting. */
interface SettingFlag {
  /** Without dashes: `container-engine.name`. */
  name: string;
  /** Hidden aliases, including those of older releases. */
  aliases: readonly string[];
  /** Where the flag is available; empty: parsed and always rejected. */
  platforms: readonly Platform[];
  hidden: boolean;
  /** Values that the tool accepts, where restricted. */
  values?: readonly string[];
}

/** A setting's flag, as `cli/arguments/flags.gen.ts` lists it. */
export interface SettingFlagRow extends SettingFlag {
  path: SettingPath;
  type: FieldType;
  since: number;
  summary: string;
}

/** One setting as `schemas/settings/v19.json` declares it. */
export interface Field {
  path: SettingPath;
  type: FieldType;
  /** The default, unless `defaultByPlatform` has an entry. */
  default: JsonValue;
  defaultByPlatform?: Readonly<Partial<Record<Platform, JsonValue>>>;
  /** Major kernel release from which the platform's own default applies; `default` before. Darwin 23 is macOS 14. */
  defaultFromKernel?: Readonly<Partial<Record<Platform, number>>>;
  enum?: readonly string[];
  /** Accepted synonyms, replaced before validation. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  unit?: string;
  /** Name of the value's grammar: `x-rd-format` in schemas/README.md. */
  format?: string;
  /** Host platforms on which it can be changed. */
  platforms: readonly Platform[];
  /** `lima`: darwin and linux; `wsl`: win32. */
  effect: { lima: Effect; wsl: Effect };
  /** Absent for `version`. */
  flag?: SettingFlag;
  lockable: boolean;
  sensitive: boolean;
  /** Specific to one computer: left out of exported settings. */
  machineOnly?: true;
  /** First settings version with this exact path. */
  since: number;
  description: string;
}
