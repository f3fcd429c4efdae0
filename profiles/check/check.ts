import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { pointerTo } from '../../src/settings/leaf-paths.ts';
import { RELEASES, type Release } from '../../src/settings/releases.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import type { DeploymentInput } from '../document/deployment-input.ts';
import type { SelectedSettings } from '../document/selection.ts';
import type { Part } from '../formats/format.ts';
import { systemOf } from './atlas.ts';
import { type CheckCell, type CheckFinding, type CheckPart, verdictOf } from './finding.ts';
import { partChecker } from './part-check.ts';

/** The cells of the table to compute. */
export interface CheckSelection {
  releases: readonly Release[];
  platforms: readonly Platform[];
}

/** Every release on every platform. */
export const ALL: CheckSelection = { releases: RELEASES, platforms: PLATFORMS };

/**
 * Checks how releases of the compatible application would interpret these deployment profiles, release by release in the order of the selection; this
 * tool would interpret them differently. Settings may nest as deep as the readers of JSON text allow (`MOST_LEVELS`).
 *
 * Assumes an up-to-date computer: macOS 14 or newer on Apple silicon, which decides the default type of the virtual machine and whether Rosetta can
 * be on. Whether a release knows a version of Kubernetes is not checked.
 * @see judgeValue for the rules that are exact and those taken from the newest release.
 */
export function checkProfile(parts: readonly CheckPart[], selection: CheckSelection): CheckCell[] {
  const checkers = parts.map(partChecker);
  return selection.releases.flatMap(({ name, settingsVersion }) =>
    selection.platforms.map((platform): CheckCell => {
      const system = systemOf(name, platform);
      const findings = checkers.flatMap((check) => check(system));
      return { release: name, settingsVersion, platform, verdict: verdictOf(findings), findings };
    }),
  );
}

/** Sentences about values that the application would not take as written. */
export interface Judgement {
  /** Values that it would refuse or ignore. */
  warnings: string[];
  /** Values that it would change. */
  notes: string[];
}

/** Checks a profile that was made here against the newest release whose own settings have the version of the profile, or the next release. */
export function judgement(
  { document, at, warnings }: DeploymentInput,
  { settings, origins }: Pick<SelectedSettings, 'settings' | 'origins'>,
  { part, platform }: { part: Part; platform: Platform },
): Judgement {
  const version = Math.min(Number(settings.version), SCHEMA_VERSION);
  const release = releaseOf(version);
  const cells = checkProfile([{ part, settings: { ...settings, version } }], {
    releases: [release],
    platforms: [platform],
  });
  const who = `the application on ${PLATFORM_NAMES[platform]}${release === RELEASES.at(-1) ? '' : `, as of ${release.name},`}`;
  const described = (finding: CheckFinding) => {
    const { path, names, reason, suggestion } = finding;
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
    return `${placeOf(names, document, at, origins)}${path}: ${reason}${hint}`;
  };
  const found: Judgement = { warnings: [], notes: [] };
  for (const finding of cells.flatMap(({ findings }) => findings)) {
    if (finding.effect === 'refused') found.warnings.push(`${who} would refuse this profile: ${described(finding)}`);
    else if (finding.effect === 'changed') found.notes.push(`${who} would change a setting: ${described(finding)}`);
    // An invalid value of the input has been reported already.
    else if (!warnings.some((line) => line.startsWith(`"${finding.path}" `))) {
      found.warnings.push(`${who} would ignore a setting: ${described(finding)}`);
    }
  }
  return found;
}

function releaseOf(version: number): Release {
  const next = RELEASES.find(({ settingsVersion }) => settingsVersion >= version)?.settingsVersion;
  const release = RELEASES.findLast(({ settingsVersion }) => settingsVersion === next);
  if (!release) throw new Error(`no release reads version ${version}`);
  return release;
}

/** Returns `file:line:column: ` of the setting in the profile, or of the nearest value around it; empty if neither was written. */
function placeOf(
  names: readonly string[],
  { file, position }: DeploymentInput['document'],
  at: string,
  origins: ReadonlyMap<string, string>,
): string {
  for (let length = names.length; length > 0; length -= 1) {
    const here = names.slice(0, length).join('.');
    const written = origins.get(here)?.split('.') ?? (length === names.length ? names : undefined);
    const rest = names.slice(length);
    for (let deep = rest.length; written && deep >= 0; deep -= 1) {
      const found = position(`${at}${pointerTo([...written, ...rest.slice(0, deep)])}`);
      if (found) return `${file}:${found.line}:${found.column}: `;
    }
  }
  return '';
}
