import { RdError } from '../errors.ts';
import type { Field } from '../settings/field.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { isSection, nearest } from '../settings/fields.ts';
import { laterPlace } from '../settings/left-over.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';

/**
 * Resolves a name: a setting by its path, its flag or a former name, or a section, `''` for all. Case-insensitive.
 * @throws RdError `ERR_USAGE` with a suggestion.
 */
export function settingNamed(name: string): { field: Field } | { section: string } {
  const asked = name.trim().replace(/^-+/, '').replace(/\.$/, '').toLowerCase();
  if (asked === '') return { section: '' };
  const field = FIELDS.find(({ path, flag }) => named(asked, path, flag));
  if (field) return { field };
  const section = sections().find((each) => each.toLowerCase() === asked);
  if (section !== undefined && isSection(section)) return { section };
  throw unknown(name.trim());
}

function named(asked: string, path: string, flag: Field['flag']): boolean {
  return path.toLowerCase() === asked || [flag?.name, ...(flag?.aliases ?? [])].some((each) => each === asked);
}

function sections(): string[] {
  const found = new Set<string>();
  for (const { path } of FIELDS) {
    for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) found.add(path.slice(0, dot));
  }
  return [...found];
}

function unknown(name: string): RdError {
  const map = FIELDS.find(({ path, type }) => type.startsWith('map') && name.startsWith(`${path}.`));
  if (map) {
    return new RdError('ERR_USAGE', `${JSON.stringify(name)} is an entry of the map ${map.path}`, {
      advice: `Ask for the map: rdctl explain ${map.path}`,
    });
  }
  const today = laterPlace(name, SCHEMA_VERSION);
  if (today !== undefined) {
    return new RdError('ERR_USAGE', `${JSON.stringify(name)} is called ${today} today`, {
      advice: `Ask for it by that name: rdctl explain ${today}`,
    });
  }
  const meant = lastNameMeant(name) ?? nearest(name, [...FIELDS.map(({ path }) => path), ...sections()]);
  return new RdError('ERR_USAGE', `there is no setting ${JSON.stringify(name)}`, {
    advice:
      meant === undefined
        ? 'List all of them with: rdctl explain'
        : `Did you mean ${meant}? List all of them with: rdctl explain`,
  });
}

/** The only setting with this last name: `memoryInGB`. */
function lastNameMeant(name: string): string | undefined {
  const last = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  const same = FIELDS.filter(({ path }) => path.slice(path.lastIndexOf('.') + 1).toLowerCase() === last);
  return same.length === 1 ? same[0]?.path : undefined;
}
