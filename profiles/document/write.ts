import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { sameValue } from '../../src/settings/canonical.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt } from '../../src/settings/leaf-paths.ts';
import { escapeInLines, stripHidden } from '../../src/settings/printable.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { API_VERSION, type DesiredState, KIND } from './shape.ts';

export interface ProfileText {
  /** `metadata.name`. */
  name: string;
  /** Complete settings at the newest version. */
  settings: JsonObject;
  defaults: JsonObject;
  /** Whether to write every setting, not only those that differ from the defaults. */
  all: boolean;
  /** Paths of settings that are written even at their default. */
  always?: readonly string[];
  /** Paths of settings that are never written. */
  leaveOut?: readonly string[];
  state: DesiredState;
  /** Address of the profile schema for the first line, which editors read. If undefined, the line says how to get one. */
  schema: string | undefined;
  /** Origin of the settings, for a comment: `the running service`. */
  origin: string;
}

/** Returns a commented YAML profile that changes nothing when it is applied to the origin of the settings. Secrets are left out. */
export function profileText(input: ProfileText): string {
  const { settings, defaults, all, always = [], leaveOut = [], state, schema, origin } = input;
  const chosen = FIELDS.filter(
    ({ path }) =>
      path !== 'version' &&
      !leaveOut.includes(path) &&
      (all || always.includes(path) || !sameValue(path, leafAt(settings, path), leafAt(defaults, path))),
  );
  const lines = [
    schema === undefined
      ? '# For completion in editors: `rdctl init --out-file FILE --with-schema` writes the schema, too.'
      : schemaLine(schema),
    `# Written by \`rdctl init\` from ${origin}. A setting that is not mentioned is left alone.`,
    `apiVersion: ${API_VERSION}`,
    `kind: ${KIND}`,
    `metadata: { name: ${scalar(input.name)} }`,
    'settings:',
    `  version: ${SCHEMA_VERSION}`,
  ];
  const written = (field: SettingField, name: string, pad: string): string[] => {
    const value = leafAt(settings, field.path);
    const described = commentLines(field.description, pad);
    if (field.sensitive) return [...described, ...secretLines(field.path, pad)];
    return value === undefined ? described : [...described, ...valueLines(name, value, pad)];
  };
  const settingLines = sectionLines(chosen, written);
  if (chosen.length === 0) settingLines.push(...firstLines(leaveOut, written));
  const power = ['# started, stopped, or unmanaged to leave the backend as it is.', `state: ${state}`];
  return `${dropEmptySections([...lines, ...settingLines, ...power]).join('\n')}\n`;
}

/** The setting that people change first, which is the only one that is not a comment. Every driver supports it. */
const FIRST = 'containerEngine.name';
const NEXT = ['kubernetes.enabled', 'virtualMachine.memoryInGB', 'virtualMachine.numberCPUs'];

/** Returns the lines of a profile without any difference: a setting to begin with, and other interesting ones as comments. */
function firstLines(
  leaveOut: readonly string[],
  written: (field: SettingField, name: string, pad: string) => readonly string[],
): string[] {
  const fields = (paths: readonly string[]) =>
    FIELDS.filter(({ path }) => paths.includes(path) && !leaveOut.includes(path));
  return [
    '  # Everything is at its default. `rdctl init --all` writes every setting.',
    ...sectionLines(fields([FIRST]), written),
    '  # To manage one of these as well, remove the first # and the space behind it from its lines:',
    ...sectionLines(fields(NEXT), written).map((line) => line.replace(/^ {2}/, '  # ')),
  ];
}

/** Returns the default variable for a secret: `PROXY_PASSWORD`. */
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
  /** Settings at the newest version, with references in place of secrets. */
  settings: JsonObject;
  /** Settings that are locked, in schema order. */
  locked: readonly SettingPath[];
  /** Address of the profile schema for the first line. */
  schema: string | undefined;
  /** Names of the imported files. */
  sources: readonly string[];
}

/** Returns a commented YAML profile with the settings of deployment profiles. It leaves the power state alone, as they do. */
export function importedText({ settings, locked, schema, sources }: ImportedText): string {
  const written = FIELDS.filter(({ path }) => path !== 'version' && leafAt(settings, path) !== undefined);
  const held = FIELDS.filter(({ path }) => locked.includes(path));
  return `${[
    ...(schema === undefined ? [] : [schemaLine(schema)]),
    '# Written by `rdctl import-profile` from:',
    ...sources.map((source) => `#   ${stripHidden(source)}`),
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

/** Removes sections of comments alone, which would read as null: their only setting is a secret. */
function dropEmptySections(lines: readonly string[]): string[] {
  return lines.map((line, index) => {
    if (!/^ +[^#]*:$/.test(line)) return line;
    const depth = line.search(/\S/);
    const next = lines.slice(index + 1).find((each) => !/^ *#/.test(each));
    return next !== undefined && next.search(/\S/) > depth ? line : `${line} {}`;
  });
}

const COLUMN = 100;
/** Characters of a plain key. A longer one must be marked; the parser allows 1024 characters with quotation marks. */
const LONGEST_KEY = 1000;

/** Lines of nested sections, one leaf for each path; paths of one section must follow each other. */
function sectionLines<T extends { path: string }>(
  leaves: readonly T[],
  leafLines: (leaf: T, name: string, pad: string) => readonly string[],
): string[] {
  const lines: string[] = [];
  let open: string[] = [];
  for (const leaf of leaves) {
    const names = leaf.path.split('.');
    const last = names.pop() ?? '';
    const shared = names.findIndex((name, index) => open[index] !== name);
    const from = shared === -1 ? names.length : shared;
    for (const [depth, name] of names.entries()) if (depth >= from) lines.push(`${indent(depth)}${scalar(name)}:`);
    open = names;
    // One by one: a map may have more entries than a call takes arguments.
    for (const line of leafLines(leaf, last, indent(names.length))) lines.push(line);
  }
  return lines;
}

/** Formats a key with its value: lists and objects below it, one line for each member. */
function valueLines(name: string, value: JsonValue, pad: string): string[] {
  if (Array.isArray(value) && value.length > 0) {
    return [...keyLines(name, '', pad), ...value.map((item) => `${pad}  - ${flow(item)}`)];
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    const below = Object.entries(value).flatMap(([inner, each]) => keyLines(inner, ` ${flow(each)}`, `${pad}  `));
    return [...keyLines(name, '', pad), ...below];
  }
  return keyLines(name, ` ${flow(value)}`, pad);
}

/** Formats a comment over as many lines as it needs. */
function commentLines(text: string, pad: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > COLUMN) lines.push(`${pad}# ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Formats text as a plain scalar if YAML 1.1 and 1.2 both read it as this text, else in JSON quotes, which are valid YAML. */
export function scalar(text: string): string {
  const plain =
    /^(?!\/[*/])[A-Za-z/][\w./*-]*$|^9p(?:2000[.\w]*)?$/.test(text) &&
    !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return plain ? text : jsonText(text);
}

/** Formats JSON that is also a valid document: without forbidden or invisible characters. */
export function jsonText(value: JsonValue, indentation?: number): string {
  return escapeInLines(JSON.stringify(value, null, indentation));
}

function keyLines(name: string, value: string, pad: string): string[] {
  const key = scalar(name);
  return key.length <= LONGEST_KEY ? [`${pad}${key}:${value}`] : [`${pad}? ${key}`, `${pad}:${value}`];
}

function indent(depth: number): string {
  return '  '.repeat(depth + 1);
}

export function flow(value: JsonValue): string {
  if (typeof value === 'string') return scalar(value);
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, inner]) => `${scalar(name)}: ${flow(inner)}`)
    .join(', ')} }`;
}

function schemaLine(schema: string): string {
  return `# yaml-language-server: $schema=${schema}`;
}
