import { posix } from 'node:path';
import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { isObject } from '../json.ts';
import { COMPATIBLE } from '../product.ts';
import { canonicalise } from '../settings/canonical.ts';
import { defaultSettings } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { leafAt, leaves, setLeaf } from '../settings/leaf-paths.ts';
import { migrate, versionProblem } from '../settings/migrate.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import { unknownKeys, validate } from '../settings/validate.ts';
import { readIfThere } from './atomic-file.ts';
import { ioError } from './io-error.ts';
import type { Environment } from './places.ts';

/** A place where an administrator may put the two deployment profiles. */
export interface PolicyPlace {
  defaults: string;
  locked: string;
}

/** A profile at the current version, in canonical form, known fields only. */
interface Policy {
  file: string;
  settings: JsonObject;
}

export interface Policies {
  /** Applied once, on the first run. */
  defaults?: Policy;
  /** Applied at every start; its fields cannot be changed. */
  locked?: Policy;
  /** Sentences about what was passed over. */
  warnings: string[];
}

/** What a profile is checked against. */
export interface PolicyHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
}

/**
 * Where deployment profiles are on this platform, best first (tool facts, 8.1). The system's places do not depend on the
 * environment, so that nobody escapes a policy by setting a variable. Only Linux has them so far.
 */
export function policyPlaces(env: Environment, platform: Platform, homedir: string): PolicyPlace[] {
  if (platform !== 'linux') return [];
  const own = env.XDG_CONFIG_HOME;
  const config = own !== undefined && posix.isAbsolute(own) ? own : posix.join(homedir, '.config');
  return [
    placeIn(COMPATIBLE.policyDirectory),
    placeIn(posix.join('/usr', COMPATIBLE.policyDirectory)),
    {
      defaults: posix.join(config, `${COMPATIBLE.directory}.defaults.json`),
      locked: posix.join(config, `${COMPATIBLE.directory}.locked.json`),
    },
  ];
}

function placeIn(directory: string): PolicyPlace {
  return { defaults: posix.join(directory, 'defaults.json'), locked: posix.join(directory, 'locked.json') };
}

/**
 * Reads the profiles of the first place that has either; places after it are not looked at, and nothing is merged.
 * @throws RdError `ERR_PROFILE_INVALID` naming the file and every bad field: a policy is never applied in part.
 */
export async function readPolicies(places: readonly PolicyPlace[], host: PolicyHost): Promise<Policies> {
  for (const place of places) {
    const defaults = await readProfile(place.defaults);
    const locked = await readProfile(place.locked);
    if (defaults === undefined && locked === undefined) continue;
    const warnings: string[] = [];
    return {
      ...(defaults === undefined ? {} : { defaults: interpret(place.defaults, defaults, false, host, warnings) }),
      ...(locked === undefined ? {} : { locked: interpret(place.locked, locked, true, host, warnings) }),
      warnings,
    };
  }
  return { warnings: [] };
}

async function readProfile(path: string): Promise<string | undefined> {
  try {
    return await readIfThere(path);
  } catch (cause) {
    throw ioError('read the deployment profile', path, cause, 'ERR_PROFILE_INVALID');
  }
}

function interpret(file: string, text: string, locked: boolean, host: PolicyHost, warnings: string[]): Policy {
  const stored = parse(file, text);
  if (stored.version === undefined) {
    throw invalid(
      `Invalid deployment file ${file}: no version specified. ` +
        `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    );
  }
  if (typeof stored.version === 'number' && stored.version > SCHEMA_VERSION) {
    throw invalid(
      `Error in deployment file ${file}: its version is ${stored.version}, and the newest known is ${SCHEMA_VERSION}`,
    );
  }
  const problem = versionProblem(stored.version);
  if (problem !== undefined) throw invalid(`Error in deployment file ${file}: ${problem}`);
  const older = typeof stored.version === 'number' && stored.version < SCHEMA_VERSION;
  const current = older ? migrate(stored, { platform: host.platform, locked, partial: true }) : stored;
  const profile = canonicalise(current);
  const unknown = unknownKeys(profile).map(({ path }) => path);
  if (unknown.length > 0) {
    warnings.push(
      `${file}: there are no settings ${unknown.map((path) => `"${path}"`).join(', ')}; they are passed over.`,
    );
  }
  const details = problemsOf(profile, host);
  if (details.length > 0) throw invalid(`Error in deployment file ${file}:`, details);
  return { file, settings: knownPart(profile) };
}

/** All of them, against the built-in defaults, which stand for the first run of any user. */
function problemsOf(profile: JsonObject, host: PolicyHost): string[] {
  const current = defaultSettings(host);
  // A profile may ask for a smaller disk than the default; which versions of a cluster exist is not known here.
  const size = leafAt(profile, 'experimental.virtualMachine.diskSize');
  if (typeof size === 'string') current.experimental.virtualMachine.diskSize = size;
  const issues = validate(profile, {
    current,
    platform: host.platform,
    arch: host.arch,
    ...(host.osRelease === undefined ? {} : { osVersion: host.osRelease }),
  });
  return issues.map((issue) => `Error for field '${issue.path}': ${issue.message}`);
}

function knownPart(profile: JsonObject): JsonObject {
  const known: JsonObject = {};
  for (const [path, value] of leaves(profile)) setLeaf(known, path, value);
  return known;
}

function parse(file: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    // Only the message: it may be shown, the text it quotes may not.
    throw invalid(`Error parsing deployment profile from ${file}: it is not JSON`, [], cause);
  }
  if (!isObject(value)) throw invalid(`Error parsing deployment profile from ${file}: it does not hold an object`);
  return value;
}

function invalid(message: string, details: string[] = [], cause?: unknown): RdError {
  return new RdError('ERR_PROFILE_INVALID', message, {
    details,
    ...(cause === undefined ? {} : { cause }),
    advice: 'Ask the administrator of this computer to correct the deployment profile; nothing is started without it.',
  });
}
