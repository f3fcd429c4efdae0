import type { JsonObject } from '../../src/json.ts';
import { PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { RELEASES, type Release } from '../../src/settings/releases.ts';
import type { Part } from '../deployment/part.ts';
import { type CheckCell, type CheckFinding, verdictOf } from './finding.ts';
import { partChecker } from './part-check.ts';
import { ALIKE, systemOf } from './system.ts';

/** One of the two deployment profiles, at its own version and by the names of that version. */
export interface CheckPart {
  part: Part;
  settings: JsonObject;
}

/** Which cells of the table are wanted. */
export interface CheckSelection {
  releases: readonly Release[];
  platforms: readonly Platform[];
}

/** Every release on every platform. */
export const ALL: CheckSelection = { releases: RELEASES, platforms: PLATFORMS };

/**
 * What releases of the compatible application would make of these deployment profiles, release by release in the order of the
 * selection: not what this tool would. Settings nest as deep as JSON text may that a reader has let pass (`MOST_LEVELS`).
 *
 * Assumed is a computer of today: macOS 14 or newer on a processor of Apple, which decides the default type of the virtual
 * machine and whether Rosetta can be on. Whether a release knows a version of Kubernetes is not looked at.
 * @see judgeValue for which rules are exact and which are those of the newest release.
 */
export function checkProfile(parts: readonly CheckPart[], selection: CheckSelection): CheckCell[] {
  const checkers = parts.map(partChecker);
  const known = new Map<string, readonly CheckFinding[]>();
  return selection.releases.flatMap(({ name, settingsVersion }) => {
    const index = ALIKE[RELEASES.findIndex((each) => each.name === name)] ?? -1;
    return selection.platforms.map((platform): CheckCell => {
      const key = `${index} ${platform}`;
      let findings = known.get(key);
      if (!findings) {
        const system = systemOf(index, platform);
        findings = system ? checkers.flatMap((check) => [...check(system)]) : [];
        known.set(key, findings);
      }
      return { release: name, settingsVersion, platform, verdict: verdictOf(findings), findings };
    });
  });
}
