import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { pointerTo } from '../../src/settings/leaf-paths.ts';
import { RELEASES, type Release } from '../../src/settings/releases.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import type { CheckFinding } from '../check/finding.ts';
import type { DeploymentInput } from './input.ts';
import type { Part } from './part.ts';
import type { SelectedSettings } from './selection.ts';

/** One sentence for each thing that the application would not take as it is written. */
export interface Judgement {
  /** What it would refuse, or pass over. */
  warnings: string[];
  /** What it would start with in another form. */
  notes: string[];
}

/**
 * What the application would make of a profile that was made here: the judgement of `profile check` in the newest release whose own
 * settings have the version of the profile, or the next one that a release has.
 */
export async function judgement(
  { document, at, warnings }: DeploymentInput,
  { settings, origins }: Pick<SelectedSettings, 'settings' | 'origins'>,
  { part, platform }: { part: Part; platform: Platform },
): Promise<Judgement> {
  const { checkProfile } = await import('../check/check.ts');
  const version = Math.min(Number(settings.version), SCHEMA_VERSION);
  const release = releaseOf(version);
  const cells = checkProfile([{ part, settings: { ...settings, version } }], {
    releases: [release],
    platforms: [platform],
  });
  const who = `the application on ${PLATFORM_NAMES[platform]}${release === RELEASES.at(-1) ? '' : `, as of ${release.name},`}`;
  const told = (finding: CheckFinding) => {
    const { path, names, reason, suggestion } = finding;
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
    return `${placeOf(names, document, at, origins)}${path}: ${reason}${hint}`;
  };
  const found: Judgement = { warnings: [], notes: [] };
  for (const finding of cells.flatMap(({ findings }) => findings)) {
    if (finding.effect === 'refused') found.warnings.push(`${who} would refuse this profile: ${told(finding)}`);
    else if (finding.effect === 'changed') found.notes.push(`${who} would change a setting: ${told(finding)}`);
    // What the input itself cannot mean is said already.
    else if (!warnings.some((line) => line.startsWith(`"${finding.path}" `))) {
      found.warnings.push(`${who} would ignore a setting: ${told(finding)}`);
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

/** `file:line:column: ` of what is called so in the profile, or of the nearest thing around it; empty where nothing was written. */
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
