import { RELEASES } from '../../src/settings/releases.ts';
import { isThere, type Place, placeIn, type Section } from './atlas.ts';
import type { System } from './system.ts';

/**
 * Why a release passes over what stands at a place that other releases have. In the same words for as many releases as possible.
 * @param by `registry`: the names are looked for before anything is migrated.
 */
export function absence(place: Place | Section, { index }: Pick<System, 'index'>, by: 'written' | 'registry'): string {
  const told = TOLD[by];
  let reasons = told.get(place);
  if (!reasons) {
    reasons = [];
    told.set(place, reasons);
  }
  const known = reasons[index];
  if (known !== undefined) return known;
  const reason = reasonOf(place, index, by);
  reasons[index] = reason;
  return reason;
}

/** Places are few and fixed; profiles to check may be thousands. */
const TOLD = { written: new Map<Place | Section, string[]>(), registry: new Map<Place | Section, string[]>() };

function reasonOf(place: Place | Section, index: number, by: 'written' | 'registry'): string {
  if (index < place.first) return beginning(place, index);
  const next = 'type' in place ? later(place, index) : undefined;
  if (!next) {
    const last = RELEASES[place.last]?.name;
    return last === undefined
      ? `no release from ${RELEASES[0]?.name ?? ''} on has it there`
      : `${last} was the last release with it`;
  }
  const since = RELEASES[Math.max(place.last + 1, next.first)]?.name ?? '';
  const moved = `it is ${next.path} since ${since}`;
  return by === 'registry'
    ? `${moved}, and the registry is read by the names of the release before it migrates`
    : moved;
}

function beginning(place: Place | Section, index: number): string {
  const since = `${RELEASES[place.first]?.name ?? ''} is the first release with it`;
  const before = 'type' in place ? placeIn(place, index) : undefined;
  return before ? `${since}; before, it is ${before.path}` : since;
}

function later(place: Place, index: number): Place | undefined {
  const next = placeIn(place, index);
  return next && next !== place && isThere(next, index) ? next : undefined;
}
