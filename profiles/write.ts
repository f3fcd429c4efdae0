import type { JsonObject } from '../src/json.ts';
import { sameValue } from '../src/settings/canonical.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { leafAt } from '../src/settings/leaf-paths.ts';
import { withoutHidden } from '../src/settings/printable.ts';
import { SCHEMA_VERSION, type SettingPath } from '../src/settings/settings.gen.ts';
import { API_VERSION, type DesiredState, KIND } from './shape.ts';
import { commentLines, sectionLines, valueLines } from './yaml-text.ts';

export interface ProfileText {
  /** Complete settings at the newest version. */
  settings: JsonObject;
  defaults: JsonObject;
  /** Write every setting, not only those that differ from the defaults. */
  all: boolean;
  /** Paths of settings that are not written in any case. */
  leaveOut?: readonly string[];
  state: DesiredState;
  /** Address of the profile schema for the first line, which editors read. */
  schema: string;
  /** Where the settings come from, for a comment: `the running service`. */
  origin: string;
}

/** A commented YAML profile that changes nothing when it is applied where the settings came from. Secrets are left out. */
export function profileText({ settings, defaults, all, leaveOut = [], state, schema, origin }: ProfileText): string {
  const chosen = FIELDS.filter(
    ({ path }) =>
      path !== 'version' &&
      !leaveOut.includes(path) &&
      (all || !sameValue(path, leafAt(settings, path), leafAt(defaults, path))),
  );
  const lines = [
    `# yaml-language-server: $schema=${schema}`,
    `# Written by \`rdctl init\` from ${origin}. A setting that is not mentioned is left alone.`,
    `apiVersion: ${API_VERSION}`,
    `kind: ${KIND}`,
    'settings:',
    `  version: ${SCHEMA_VERSION}`,
  ];
  if (chosen.length === 0) lines.push('  # Everything is at its default. `rdctl init --all` writes every setting.');
  const settingLines = sectionLines(chosen, (field, name, pad) => {
    const value = leafAt(settings, field.path);
    const described = commentLines(field.description, pad);
    if (field.sensitive) return [...described, ...secretLines(field.path, pad)];
    return value === undefined ? described : [...described, ...valueLines(name, value, pad)];
  });
  const power = ['# started, stopped, or unmanaged to leave the backend as it is.', `state: ${state}`];
  return `${dropEmptySections([...lines, ...settingLines, ...power]).join('\n')}\n`;
}

/** The variable that a secret is read from where nobody says another one: `PROXY_PASSWORD`. */
export function secretVariable(path: string): string {
  return path
    .split('.')
    .slice(-2)
    .join('_')
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_');
}

function secretLines(path: string, pad: string): string[] {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return [
    `${pad}# A secret is never written out. To manage it:`,
    `${pad}# ${name}: { fromEnv: ${secretVariable(path)} }`,
  ];
}

export interface ImportedText {
  /** At the newest version, with references in the place of secrets. */
  settings: JsonObject;
  /** Settings that are locked, in schema order. */
  locked: readonly SettingPath[];
  /** Address of the profile schema for the first line. */
  schema: string;
  /** Names of what it was read from. */
  sources: readonly string[];
}

/** A commented YAML profile with what deployment profiles hold. It leaves the power state alone, as they do. */
export function importedText({ settings, locked, schema, sources }: ImportedText): string {
  const written = FIELDS.filter(({ path }) => path !== 'version' && leafAt(settings, path) !== undefined);
  const held = FIELDS.filter(({ path }) => locked.includes(path));
  return `${[
    `# yaml-language-server: $schema=${schema}`,
    '# Written by `rdctl import-profile` from:',
    ...sources.map((source) => `#   ${withoutHidden(source)}`),
    `apiVersion: ${API_VERSION}`,
    `kind: ${KIND}`,
    'settings:',
    `  version: ${SCHEMA_VERSION}`,
    ...sectionLines(written, ({ path, description }, name, pad) => [
      ...commentLines(description, pad),
      ...valueLines(name, leafAt(settings, path) ?? null, pad),
    ]),
    '# What is not locked is a default.',
    held.length === 0 ? 'locked: {}' : 'locked:',
    ...sectionLines(held, (_, name, pad) => valueLines(name, true, pad)),
    'state: unmanaged',
  ].join('\n')}\n`;
}

/** A section whose only setting is a secret holds comments alone, which would read as null. */
function dropEmptySections(lines: readonly string[]): string[] {
  return lines.map((line, index) => {
    if (!/^ +[^#]*:$/.test(line)) return line;
    const depth = line.search(/\S/);
    const next = lines.slice(index + 1).find((each) => !/^ *#/.test(each));
    return next !== undefined && next.search(/\S/) > depth ? line : `${line} {}`;
  });
}
