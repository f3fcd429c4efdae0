import type { Part } from '../deployment/part.ts';
import type { Loss } from '../import/importer.ts';
import { absence } from './absence.ts';
import { ATLAS, type AtlasNode, isThere, type Place, type Section } from './atlas.ts';
import type { CheckFinding, Effect } from './finding.ts';

/** What the reader of a format left out, and the part that it was in. */
export interface PlacedLoss extends Loss {
  part?: Part;
}

/**
 * What a release makes of values that are in no part: every release ignores or refuses them alike, but a value of a wrong type
 * means nothing to one that does not look for its name.
 * @returns the findings for a place in `RELEASES`.
 */
export function lossFindings(lost: readonly PlacedLoss[]): (release: number) => CheckFinding[] {
  const found = lost.map(() => new Map<string, CheckFinding>());
  return (release) =>
    lost.map((loss, index) => {
      const { effect, reason } = judged(loss, release);
      const known = found[index]?.get(reason);
      if (known) return known;
      const { part, place } = loss;
      const finding: CheckFinding = { ...(part ? { part } : {}), path: place, names: [place], effect, reason };
      found[index]?.set(reason, finding);
      return finding;
    });
}

function judged({ names, reason, refused }: PlacedLoss, release: number): { effect: Effect; reason: string } {
  const place = refused && names ? placeOf(names) : undefined;
  if (place && !isThere(place, release)) {
    return { effect: 'ignored', reason: absence(place, { index: release }, 'registry') };
  }
  return { effect: refused ? 'refused' : 'ignored', reason };
}

/** The setting or section that the names lead to, as far as they are those of one. */
function placeOf(names: readonly string[]): Place | Section | undefined {
  let members = ATLAS.folded;
  let node: AtlasNode | undefined;
  for (const name of names) {
    node = members.get(name.toLowerCase());
    if (!node || 'place' in node) break;
    members = node.section.folded;
  }
  return node && ('place' in node ? node.place : node.section);
}
