/** The service's responses to drift: show it, also warn about it, or revert the field. */
export const HEAL_LEVELS = ['report', 'warn', 'enforce'] as const;
export type HealLevel = (typeof HEAL_LEVELS)[number];

/** The `watch` block of a profile. */
export interface WatchRules {
  heal: HealLevel;
  /** Keyed by the path of a setting or section, `state` or `portForwards`; the longest match counts. */
  fields: Record<string, HealLevel>;
}

/** Returns the level of a field, named as in plans. */
export function healLevel({ heal, fields }: WatchRules, path: string): HealLevel {
  let best = '';
  for (const name of Object.keys(fields)) {
    const matches = path === name || path.startsWith(`${name}.`);
    if (matches && name.length > best.length) best = name;
  }
  return fields[best] ?? heal;
}
