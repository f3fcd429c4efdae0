import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { canonicalizeTexts, isKubernetesVersion, parseByteSize } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { settingAt } from '../../src/settings/fields.ts';
import type { Issue } from '../../src/settings/issue.ts';
import { leafAt, leaves, pointerNames, removeLeaf, setLeaf, valueAt } from '../../src/settings/leaf-paths.ts';
import { migrateWithOrigins, namesBefore, versionProblem } from '../../src/settings/migrate.ts';
import { copyOfObject } from '../../src/settings/own.ts';
import { SCHEMA_VERSION, type Settings } from '../../src/settings/settings.gen.ts';
import { unknownKeys, validate } from '../../src/settings/validate.ts';
import {
  invalidPolicy,
  type Policies,
  type Policy,
  type PolicyHost,
  type WrittenPolicy,
  withOwnerAdvice,
} from './policy.ts';

const VERSION_PATH = 'kubernetes.version';
/** Maximum characters of a quoted value, or of a sentence that contains one. */
const MAX_QUOTE = 240;
/** Maximum names in a message. */
const MAX_NAMED = 20;

/**
 * Interprets a written profile: the result is at the newest version, canonical, with known settings only.
 * @throws RdError `ERR_PROFILE_INVALID` with the source and every bad field: a policy is never applied in part.
 */
export function interpretPolicy(
  written: WrittenPolicy,
  { locked, host, warnings }: { locked: boolean; host: PolicyHost; warnings: string[] },
): Policy {
  const { source, settings } = written;
  const version = versionOf(written);
  const { document, origins } = migrateWithOrigins(settings, { platform: host.platform, locked, partial: true });
  const profile = canonicalizeTexts(document);
  const unknown = unknownKeys(profile).map(({ pointer }) =>
    written.nameOf(namesBefore(origins, pointerNames(pointer))),
  );
  const ignored = [...new Set([...written.ignored, ...unknown])];
  if (ignored.length > 0) {
    warnings.push(`${source}: unknown settings ${namesText(ignored)} are ignored.`);
  }
  const issues = issuesOf(profile, host);
  const lines = issues.map((issue) => {
    const names = namesBefore(origins, pointerNames(issue.pointer));
    return `Error for field '${written.nameOf(names)}': ${problemText(issue, profile, written)}`;
  });
  const wrongTypes = written.problems.length > 0 || issues.some(isWrongType);
  const versionLines = lockedVersionProblem(profile, locked);
  const details = [...written.problems, ...lines, ...versionLines];
  if (wrongTypes) throw invalidPolicy(written.heading, details);
  if (lines.length === 0 && versionLines.length > 0) throw invalidPolicy(`${versionLines.join(' ')} (${source})`);
  if (details.length > 0) throw invalidPolicy(`Error in deployment profiles: ${source}`, details);
  if (!locked) dropUnusableVersion(profile, source, warnings);
  return { source, version, settings: knownPart(profile) };
}

/** Lists names: `"a", "b" and 7 more`. */
function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMED).map((name) => JSON.stringify(name));
  const more = names.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function versionOf({ source, settings, noVersion }: WrittenPolicy): number {
  const { version } = settings;
  if (version === undefined) throw invalidPolicy(noVersion);
  if (typeof version === 'number' && Number.isInteger(version) && version > SCHEMA_VERSION) {
    throw invalidPolicy(
      `Error in deployment profiles: ${source}: its version is ${version}, and the newest known is ${SCHEMA_VERSION}`,
    );
  }
  const problem = versionProblem(version);
  if (problem !== undefined || typeof version !== 'number') {
    throw invalidPolicy(`Error in deployment file ${source}: ${problem}`);
  }
  return version;
}

/** Validates against the built-in defaults, because a profile must be valid on the first run of any user. */
function issuesOf(profile: JsonObject, host: PolicyHost): Issue[] {
  const current = defaultSettings(host);
  // A profile may set a smaller disk than the default. An invalid size is left to validation, which must not take it for unchanged.
  const size = leafAt(profile, 'experimental.virtualMachine.diskSize');
  if (typeof size === 'string' && parseByteSize(size) !== undefined)
    current.experimental.virtualMachine.diskSize = size;
  // The available cluster versions are not known yet; `withOfferedVersion` checks them later.
  const checked = structuredClone(profile);
  if (typeof leafAt(profile, VERSION_PATH) === 'string') removeLeaf(checked, VERSION_PATH);
  return validate(checked, {
    current,
    platform: host.platform,
    arch: host.arch,
    ...defined({ osVersion: host.osRelease }),
  });
}

function isWrongType({ code }: Issue): boolean {
  return code === 'type' || code === 'section';
}

/**
 * Describes a problem: `expecting value of type string, got an array ["a"]`, or the validator's sentence, with the expected values if the value
 * itself is invalid.
 */
function problemText(issue: Issue, profile: JsonObject, { quote }: WrittenPolicy): string {
  const field = settingAt(issue.path);
  if (!isWrongType(issue)) {
    const isValue = issue.code === 'range' || issue.code === 'format';
    return `${shorten(issue.message)}${isValue && issue.expected ? `; expected ${issue.expected}` : ''}`;
  }
  const value = valueAt(profile, issue.pointer) ?? null;
  const shown = holdsSecret(issue.path) ? '***' : shorten(JSON.stringify(value));
  // The pointer of a map entry is longer than the path of its field.
  const entry = pointerNames(issue.pointer).join('.') !== issue.path;
  const expectedType = entry ? 'boolean' : typeWord(field?.type);
  return `expecting value of type ${expectedType}, got ${kindOf(value)}${value === null ? '' : ` ${quote(shown)}`}`;
}

/** True for a secret and for a section that contains one, because a value in place of the section may contain the secret. */
function holdsSecret(path: string): boolean {
  return FIELDS.some((field) => field.sensitive && `${field.path}.`.startsWith(`${path}.`));
}

/** Shortens a value, which may be as long as the file. */
function shorten(text: string): string {
  return text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE - 20)}…${text.slice(-20)}` : text;
}

function typeWord(type: string | undefined): string {
  if (type === undefined || type.startsWith('map')) return 'object';
  if (type === 'integer') return 'number';
  return type === 'string[]' ? 'array' : type;
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : `a ${typeof value}`;
}

/** Checks a locked cluster version. It is never replaced by a default, so it must at least be a valid version. */
function lockedVersionProblem(profile: JsonObject, locked: boolean): string[] {
  const version = leafAt(profile, VERSION_PATH);
  if (!locked || typeof version !== 'string' || version === '' || isKubernetesVersion(version)) return [];
  return [`Locked kubernetes version '${shorten(version)}' isn't a valid version.`];
}

function dropUnusableVersion(profile: JsonObject, source: string, warnings: string[]): void {
  const version = leafAt(profile, VERSION_PATH);
  if (typeof version !== 'string' || version === '' || isKubernetesVersion(version)) return;
  removeLeaf(profile, VERSION_PATH);
  warnings.push(
    `${source}: kubernetes.version ${JSON.stringify(shorten(version))} is not a version; the default is used.`,
  );
}

function knownPart(profile: JsonObject): JsonObject {
  const known: JsonObject = {};
  for (const [path, value] of leaves(profile)) setLeaf(known, path, value);
  return known;
}

/**
 * Checks the cluster version of a profile against the available ones. An unavailable default is replaced by the service's own choice, with a warning;
 * an unavailable locked version fails the start if the cluster is enabled.
 * @param firstRun whether the defaults profile has just been applied.
 * @returns the settings to begin with.
 * @throws RdError `ERR_PROFILE_INVALID`, in the words of the compatible application.
 */
export function withOfferedVersion(
  settings: Settings,
  { defaults, locked, own }: Policies,
  context: { firstRun: boolean; versions: readonly string[] | undefined; warnings: string[] },
): Settings {
  const { versions, firstRun, warnings } = context;
  const { version, enabled } = settings.kubernetes;
  // Without a list of versions nothing can be checked.
  if (versions === undefined || versions.length === 0 || version === '' || versions.includes(version)) return settings;
  if (locked && leafAt(locked.settings, VERSION_PATH) !== undefined) {
    if (!enabled) return settings;
    const error = invalidPolicy(`Locked kubernetes version '${version}' isn't available. (${locked.source})`, [
      `Available are ${versions.slice(0, 10).join(', ')}${versions.length > 10 ? ', …' : ''}`,
    ]);
    throw own ? withOwnerAdvice(error) : error;
  }
  if (!firstRun || !defaults || leafAt(defaults.settings, VERSION_PATH) === undefined) return settings;
  warnings.push(`${defaults.source}: kubernetes.version ${version} is not available; the default is used.`);
  const chosen = copyOfObject(settings);
  setLeaf(chosen, VERSION_PATH, '');
  // Still valid settings: only one string has changed in the copy.
  return chosen as Settings;
}
