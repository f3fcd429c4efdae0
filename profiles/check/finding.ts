import type { JsonObject } from '../../src/json.ts';
import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { wordList } from '../../src/settings/printable.ts';
import { RELEASES } from '../../src/settings/releases.ts';
import type { Part } from '../formats/format.ts';

/** One of the two deployment profiles, with its own version and the names of that version. */
export interface CheckPart {
  part: Part;
  settings: JsonObject;
}

/**
 * The fate of a field. `refused`: the application does not start with the profile, or quits as soon as it needs the value; `ignored`: it starts
 * without the value; `changed`: it starts with a different value or additional ones.
 */
export type Effect = 'refused' | 'ignored' | 'changed';

/** A value that a release does not take as written. */
export interface CheckFinding {
  /** Part of the value; absent if it is in none. */
  part?: Part;
  /** Dotted path as written in the profile; `version` for the profile as a whole. */
  path: string;
  /** The path as a list of names; for a value that the release adds, the path that it would have. */
  names: readonly string[];
  effect: Effect;
  /** A clause in the same words for every affected release, so that equal findings can be merged. */
  reason: string;
  /** The name or value that was probably meant. */
  suggestion?: string;
}

export type Verdict = 'accepted' | 'partly' | 'rejected';

/** The findings of one release on one platform. */
export interface CheckCell {
  /** Name of the release, such as `1.20`. */
  release: string;
  settingsVersion: number;
  platform: Platform;
  verdict: Verdict;
  findings: readonly CheckFinding[];
}

/** Returns a key that is the same for equal findings. */
export function findingKey({ part, path, names, effect, reason }: CheckFinding): string {
  return [part, effect, reason, path, ...names].join('\n');
}

export function verdictOf(findings: Iterable<CheckFinding>): Verdict {
  let verdict: Verdict = 'accepted';
  for (const { effect } of findings) {
    if (effect === 'refused') return 'rejected';
    if (effect === 'ignored') verdict = 'partly';
  }
  return verdict;
}

/** A finding with all cells that have it. */
export interface SpreadFinding {
  finding: CheckFinding;
  /** Releases by platform, in the order of the cells. */
  where: readonly { platform: Platform; releases: readonly string[] }[];
}

const EFFECTS: readonly Effect[] = ['refused', 'ignored', 'changed'];

/** Findings of one effect. `later` ones only matter once nothing else makes a release refuse the profile. */
export interface FindingList {
  effect: Effect;
  later: boolean;
  findings: SpreadFinding[];
}

/**
 * Groups the findings for display: refused values; ignored and changed values where the application starts; and those where it does not start, unless
 * it refuses only the version.
 */
export function findingLists(cells: readonly CheckCell[]): FindingList[] {
  const starting = cells.filter(({ verdict }) => verdict !== 'rejected');
  const shown = new Set(starting.flatMap(({ findings }) => findings.map(findingKey)));
  const stopped = cells
    .filter(({ findings }) => findings.some(({ effect, path }) => effect === 'refused' && path !== 'version'))
    .map((cell) => ({ ...cell, findings: cell.findings.filter((finding) => !shown.has(findingKey(finding))) }));
  const sources = [
    { later: false, findings: spread(cells).filter(({ finding }) => finding.effect === 'refused') },
    { later: false, findings: spread(starting) },
    { later: true, findings: spread(stopped).filter(({ finding }) => finding.effect !== 'refused') },
  ];
  return sources.flatMap(({ later, findings }) =>
    EFFECTS.flatMap((effect) => {
      const some = findings.filter(({ finding }) => finding.effect === effect);
      return some.length === 0 ? [] : [{ effect, later, findings: some }];
    }),
  );
}

/** Returns each distinct finding once: refused ones first, then in the order of detection. */
export function spread(cells: readonly CheckCell[]): SpreadFinding[] {
  const found = new Map<string, { finding: CheckFinding; releases: Map<Platform, string[]> }>();
  for (const { findings, platform, release } of cells) {
    for (const finding of findings) {
      const key = findingKey(finding);
      const { releases } = found.get(key) ?? { releases: new Map<Platform, string[]>() };
      const before = releases.get(platform);
      if (before) before.push(release);
      else releases.set(platform, [release]);
      found.set(key, { finding, releases });
    }
  }
  const all = [...found.values()].map(({ finding, releases }) => ({
    finding,
    where: [...releases].map(([platform, names]) => ({ platform, releases: names })),
  }));
  return EFFECTS.flatMap((effect) => all.filter(({ finding }) => finding.effect === effect));
}

/** Formats releases as ranges of adjacent known ones: `1.8–1.12, 1.20`. */
export function rangesText(releases: readonly string[]): string {
  const wanted = new Set(releases);
  const runs: string[][] = [];
  let open = false;
  for (const { name } of RELEASES) {
    if (wanted.has(name)) {
      if (open) runs.at(-1)?.push(name);
      else runs.push([name]);
    }
    open = wanted.has(name);
  }
  return runs.map((run) => (run.length === 1 ? run[0] : `${run[0]}–${run.at(-1)}`)).join(', ');
}

/** Formats the cells of a finding: `1.8–1.19 on Windows; 1.20 on macOS and Linux`. Only restrictions within the selected cells are mentioned. */
export function whereText({ where }: SpreadFinding, cells: readonly CheckCell[]): string {
  const platforms = PLATFORMS.filter((platform) => cells.some((cell) => cell.platform === platform));
  const releases = new Set(cells.map(({ release }) => release));
  const groups = new Map<string, Platform[]>();
  for (const { platform, releases: some } of where) {
    const text = some.length === releases.size && releases.size > 1 ? '' : rangesText(some);
    groups.set(text, [...(groups.get(text) ?? []), platform]);
  }
  const texts = [...groups].map(([text, some]) => {
    const everywhere = some.length === platforms.length;
    if (text === '') return everywhere ? 'every release' : `every release on ${namesText(some)}`;
    return everywhere ? text : `${text} on ${namesText(some)}`;
  });
  return texts.join('; ');
}

/** Lists platforms: `macOS, Linux and Windows`. */
function namesText(platforms: readonly Platform[]): string {
  const names = PLATFORMS.filter((platform) => platforms.includes(platform)).map((each) => PLATFORM_NAMES[each]);
  return wordList(names);
}

/**
 * Summarizes the check of the newest selected release, and the releases that refuse the profile everywhere: `Accepted by 1.24 on macOS and Linux;
 * refused on Windows because of 1 setting; 1.8–1.19 refuse it.`
 */
export function sentence(cells: readonly CheckCell[]): string {
  if (cells.every(({ verdict }) => verdict === 'accepted')) return `Accepted by ${allText(cells)}.`;
  const newest = cells.at(-1)?.release ?? '';
  const last = cells.filter(({ release }) => release === newest);
  const clauses = VERDICTS.flatMap((verdict) => clauseOf(verdict, last));
  const [first = '', ...rest] = clauses.map((clause, index) => (index === 0 ? clause(`by ${newest} `) : clause('')));
  const others = last.every(({ verdict }) => verdict === 'rejected') ? [] : refusing(cells);
  const all = [
    ...rest,
    ...(others.length === 0 ? [] : [`${rangesText(others)} refuse${others.length === 1 ? 's' : ''} it`]),
  ];
  return `${first.charAt(0).toUpperCase()}${first.slice(1)}${all.map((clause) => `; ${clause}`).join('')}.`;
}

/** Returns the releases that refuse the profile on every platform. */
function refusing(cells: readonly CheckCell[]): string[] {
  const taken = new Set(cells.filter(({ verdict }) => verdict !== 'rejected').map(({ release }) => release));
  return [...new Set(cells.map(({ release }) => release))].filter((release) => !taken.has(release));
}

const VERDICTS: readonly Verdict[] = ['accepted', 'partly', 'rejected'];
const WORDS: Readonly<Record<Verdict, string>> = {
  accepted: 'accepted',
  partly: 'accepted in part',
  rejected: 'refused',
};

/** Returns the clauses of a verdict. Platforms with the same verdict for the same number of reasons share one. */
function clauseOf(verdict: Verdict, cells: readonly CheckCell[]): ((by: string) => string)[] {
  const groups = new Map<string, Platform[]>();
  for (const cell of cells.filter((each) => each.verdict === verdict)) {
    const because = becauseOf(cell);
    groups.set(because, [...(groups.get(because) ?? []), cell.platform]);
  }
  return [...groups].map(
    ([because, platforms]) =>
      (by: string) =>
        `${WORDS[verdict]} ${by}on ${namesText(platforms)}${because}`,
  );
}

function becauseOf({ verdict, findings }: CheckCell): string {
  if (verdict === 'accepted') return '';
  const effect: Effect = verdict === 'rejected' ? 'refused' : 'ignored';
  const paths = new Set(findings.filter((each) => each.effect === effect).map(({ part, path }) => `${part} ${path}`));
  if (verdict === 'partly')
    return `, where ${paths.size === 1 ? '1 setting is' : `${paths.size} settings are`} ignored`;
  // Only a finding about the file as a whole has no names.
  const whole = findings.find((each) => each.effect === effect && each.names.length === 0);
  if (whole) return ` because of its ${whole.reason.startsWith('its name') ? 'name' : 'byte order mark'}`;
  const version = [...paths].every((path) => path.endsWith(' version'));
  if (version) return ' because of its version';
  return ` because of ${paths.size} setting${paths.size === 1 ? '' : 's'}`;
}

function allText(cells: readonly CheckCell[]): string {
  const releases = [...new Set(cells.map(({ release }) => release))];
  const platforms = namesText(cells.map(({ platform }) => platform));
  const text =
    releases.length === RELEASES.length
      ? `every release from ${RELEASES[0]?.name} to ${RELEASES.at(-1)?.name}`
      : rangesText(releases);
  return `${text} on ${platforms}`;
}
