import { RdError } from '../../src/errors.ts';
import { defined, type JsonObject } from '../../src/json.ts';
import type { FirstRun, LayerFacts, ProfileLayer } from '../../src/plan/layers.ts';
import { defaultSettings, type Host } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';

/** A profile at the current version, in canonical form, known settings only. */
export interface Policy {
  /** Path of the file, or the registry key. */
  source: string;
  /** The settings version that it was written for. */
  version: number;
  settings: JsonObject;
}

/** The deployment profiles of a computer. */
export interface Policies {
  /** Applied once, on the first run. */
  defaults?: Policy;
  /** Applied at every start; its settings cannot be changed. */
  locked?: Policy;
  /** Sentences about ignored settings. */
  warnings: string[];
  /** Set if the profiles belong to the user. */
  own?: true;
  /** The searched locations, highest precedence first, up to the one used. */
  looked: string[];
}

/** The computer that a profile is checked for. */
export interface PolicyHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
}

/** A profile as written, before interpretation. */
export interface WrittenPolicy {
  source: string;
  settings: JsonObject;
  /** Returns the display name of a setting, from its names in the document. */
  nameOf(names: readonly string[]): string;
  /** Quotes a value for a message about its type. */
  quote(json: string): string;
  /** The heading of the message that lists wrong types. */
  heading: string;
  /** The error message for a profile without a version. */
  noVersion: string;
  /** Invalid values already found by the reader, one line each. */
  problems: readonly string[];
  /** Unknown names, which were ignored. */
  ignored: readonly string[];
}

/** The error for an invalid profile, which keeps the service from starting. */
export function invalidPolicy(message: string, details: readonly string[] = [], cause?: unknown): RdError {
  return new RdError('ERR_PROFILE_INVALID', message, {
    details,
    ...defined({ cause }),
    advice: 'Ask your administrator to fix the deployment profile; the service does not start until it is valid.',
  });
}

/** Adds advice for the user's own profile to the error for an invalid one: it does not need an administrator to fix. */
export function withOwnerAdvice(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_PROFILE_INVALID') return error;
  const { code, message, details, cause } = error;
  return new RdError(code, message, {
    details,
    cause,
    advice: 'Fix or remove this deployment profile, which is your own; the service does not start until then.',
  });
}

/** The setting layers of a home that come from profiles and from the computer. */
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
