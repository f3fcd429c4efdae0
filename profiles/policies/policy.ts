import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import type { FirstRun, LayerFacts, ProfileLayer } from '../../src/plan/layers.ts';
import { defaultSettings, type Host } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';

/** A profile at the current version, in canonical form, known settings only. */
export interface Policy {
  /** Path of the file, or the registry key. */
  source: string;
  /** Version that it was written for. */
  version: number;
  settings: JsonObject;
}

/** The deployment profiles of a computer. */
export interface Policies {
  /** Applied once, on the first run. */
  defaults?: Policy;
  /** Applied at every start; its settings cannot be changed. */
  locked?: Policy;
  /** Sentences about what was passed over. */
  warnings: string[];
  /** They are the user's own. */
  own?: true;
  /** Every place that was looked at, best first, up to the one that was taken. */
  looked: string[];
}

/** What a profile is checked against. */
export interface PolicyHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
}

/** A profile as it was written, before anything is made of it. */
export interface WrittenPolicy {
  source: string;
  settings: JsonObject;
  /** The name of a setting in messages; the names are those of the document. */
  nameOf(names: readonly string[]): string;
  /** How a value is quoted in a message about its type. */
  quote(json: string): string;
  /** First words of the message that lists wrong types. */
  heading: string;
  /** Sentence for a profile without a version. */
  noVersion: string;
  /** Bad values that the reader has found already, a line each. */
  problems: readonly string[];
  /** Names that mean nothing, and were left out. */
  passedOver: readonly string[];
}

/** A profile that cannot be used. Nothing starts without it. */
export function invalidPolicy(message: string, details: readonly string[] = [], cause?: unknown): RdError {
  return new RdError('ERR_PROFILE_INVALID', message, {
    details,
    ...(cause === undefined ? {} : { cause }),
    advice: 'Ask your administrator to fix the deployment profile; the service does not start until it is valid.',
  });
}

/** The same error with advice for the user's own profile, which needs no administrator to correct. */
export function withOwnerAdvice(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') return error;
  const { code, message, details, cause } = error;
  return new RdError(code, message, {
    details,
    cause,
    advice: 'Fix or remove this deployment profile, which is your own; the service does not start until then.',
  });
}

/** The layers of a home, as far as they come from profiles and the computer. */
export function layerFacts(
  { looked, defaults, locked }: Policies,
  home: { host: Host; settingsFile: string; firstRun?: FirstRun },
): LayerFacts {
  const { host, settingsFile, firstRun } = home;
  return {
    platform: host.platform,
    builtIn: defaultSettings(host),
    settingsFile,
    looked,
    ...(defaults ? { defaultsProfile: layerOf(defaults) } : {}),
    ...(locked ? { lockedProfile: layerOf(locked) } : {}),
    ...(firstRun ? { firstRun } : {}),
  };
}

function layerOf({ source, version, settings }: Policy): ProfileLayer {
  return { source, version, settings };
}
