import type { JsonValue } from '../json.ts';
import type { BlockPath } from './blocks.gen.ts';
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

/** A setting, or a field of a block of a profile. */
export type ManagedPath = SettingPath | BlockPath;

/** A part of the backend, whose specification includes the settings that it runs with. */
export type Part = 'machine' | 'engine' | 'cluster';

/** One field as its schema declares it: a setting, or a field of a block of a profile. */
export interface Field<Path extends ManagedPath = ManagedPath> {
  path: Path;
  type: FieldType;
  /** The default, unless `defaultByPlatform` has an entry. */
  default: JsonValue;
  defaultByPlatform?: Readonly<Partial<Record<Platform, JsonValue>>>;
  /** Major kernel release from which the platform's own default applies, instead of `default`. Darwin 23 is macOS 14. */
  defaultFromKernel?: Readonly<Partial<Record<Platform, number>>>;
  /** Accepted values; of a map, those of its entries. */
  enum?: readonly string[];
  /** Accepted synonyms, replaced before validation. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  unit?: string;
  /** Name of the value's grammar: `x-rd-format` in schemas/README.md. */
  format?: string;
  /** Host platforms on which the field can be changed. */
  platforms: readonly Platform[];
  /** `lima`: darwin and linux; `wsl`: win32. */
  effect: { lima: Effect; wsl: Effect };
  lockable: boolean;
  sensitive: boolean;
  description: string;
  /** The part whose specification has the field under its own name; settings are mapped by hand. */
  part?: Part;
  /** Present only for settings. */
  flag?: SettingFlag;
}

/** One setting as `schemas/settings/v19.json` declares it. */
export interface SettingField extends Field<SettingPath> {
  /** Absent for `version`. */
  flag?: SettingFlag;
  /** Specific to one computer: left out of exported settings. */
  machineOnly?: true;
  /** First settings version with this exact path. */
  since: number;
}

/** A path of earlier releases, as `schemas/settings/past.json` declares it. */
export interface PastSetting {
  path: string;
  /** The current setting; absent if the old one was removed. */
  now?: SettingPath;
  /** First and last settings version that had it; absent if no release wrote it. */
  from?: number;
  to?: number;
  /** The old value means the opposite of the current one. */
  inverted?: true;
  /** Releases that upgrade a document drop its value, because the current setting uses another unit. */
  dropped?: true;
  /** First and last release that had it, if its settings version does not tell. */
  releases?: readonly [first: string, last: string];
  /** The last release with a removed setting, and its type there. */
  last?: string;
  type?: FieldType;
  /** First and last settings version whose documents may have it, if they differ from `from` and `to`. */
  read?: readonly [from: number, to: number];
  /** JSON types of its value, or of the entries of its map, if they differ from `type` or from the current setting's. */
  types?: readonly string[];
}
