import type { PastSetting } from './field.ts';
import { PAST } from './past.gen.ts';

const byName = new Map(PAST.map((row) => [plain(row.path), row]));

/**
 * Returns a setting of earlier releases.
 * @param name its dotted path or its flag, in any case.
 * @returns undefined for a name that no release had; a current setting may have such a name as well.
 */
export function pastSetting(name: string): PastSetting | undefined {
  return byName.get(plain(name));
}

/** True if settings of earlier releases were below this dotted path. */
export function isPastSection(path: string): boolean {
  return PAST.some((row) => row.path.startsWith(`${path}.`));
}

/** Describes the fate of an old setting, as a clause without its subject: `was removed; 1.15 was the last release with it`. */
export function pastText({ now, inverted, last, to, dropped }: PastSetting): string {
  if (now === undefined) return `was removed${last === undefined ? '' : `; ${last} was the last release with it`}`;
  const since = to === undefined ? '' : ` (since settings version ${to + 1})`;
  const note = inverted ? ', with the opposite meaning' : dropped ? ', which counts in another unit' : '';
  return `is now called ${now}${note}${since}`;
}

/** Describes the fate of an old setting, to follow its name: `, which was removed`. Empty for a name that no release had. */
export function pastClause(path: string): string {
  const past = pastSetting(path);
  return past ? `, which ${pastText(past)}` : '';
}

/** Normalizes a path or flag: names of flags have dashes where paths have capitals. */
function plain(name: string): string {
  return name.replace(/^-+/, '').replaceAll('-', '').toLowerCase();
}
