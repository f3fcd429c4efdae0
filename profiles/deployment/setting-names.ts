import { RdError } from '../../src/errors.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import type { SettingMember } from '../../src/settings/member.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { membersAt } from '../formats/tree.ts';
import { isWithin } from './locked-part.ts';

/** A choice of settings on the command line. */
export interface NamedSettings {
  /** The flag, for messages: `--only`. */
  flag: string;
  /** Dotted paths of settings or sections. */
  names: readonly string[];
}

/**
 * Refuses names that no setting and no section has.
 * @param version whose names count beside those of today.
 * @throws RdError `ERR_USAGE` with the first such name, and what was probably meant.
 */
export async function checkNames(choices: readonly NamedSettings[], version: number): Promise<void> {
  if (choices.every(({ names }) => names.length === 0)) return;
  const known = new Set([...pathsOf(await membersAt(SCHEMA_VERSION)), ...pathsOf(await membersAt(version))]);
  for (const { flag, names } of choices) {
    for (const name of names) if (!known.has(name)) throw await unknownName(flag, name, known);
  }
}

function pathsOf(members: readonly SettingMember[], above = ''): string[] {
  return members.flatMap((member) => {
    const path = above === '' ? member.name : `${above}.${member.name}`;
    return member.kind === 'section' ? [path, ...pathsOf(member.members, path)] : [path];
  });
}

/** Names that are longer are neither shown in full nor looked up. */
const LONGEST = 100;

async function unknownName(flag: string, name: string, known: ReadonlySet<string>): Promise<RdError> {
  const given = `${flag} ${JSON.stringify(name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name)}`;
  const message = `${given}: there is no such setting or section`;
  const map = FIELDS.find(({ path, type }) => type.startsWith('map') && isWithin(name, path));
  if (map) {
    return new RdError('ERR_USAGE', `${given}: an entry of a map cannot be chosen`, {
      advice: `${map.path} as a whole can.`,
    });
  }
  const { laterPlace } = await import('../../src/settings/left-over.ts');
  const later = name.length > LONGEST ? undefined : laterPlace(name, SCHEMA_VERSION);
  if (later !== undefined) {
    return new RdError('ERR_USAGE', message, {
      advice: `It is called ${later} now; with --keep-version the names of the input's version count too.`,
    });
  }
  const close = nearest(name, known);
  return new RdError('ERR_USAGE', message, close === undefined ? {} : { advice: `Did you mean ${close}?` });
}
