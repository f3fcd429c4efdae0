import { isObject, type JsonObject, type JsonValue } from '../src/json.ts';
import { sameValue } from '../src/settings/canonical.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { leafAt } from '../src/settings/leaf-paths.ts';
import { SCHEMA_VERSION } from '../src/settings/settings.gen.ts';
import { API_VERSION, type DesiredState, KIND } from './shape.ts';

export interface ProfileText {
  /** Complete settings at the newest version. */
  settings: JsonObject;
  defaults: JsonObject;
  /** Write every setting, not only those that differ from the defaults. */
  all: boolean;
  state: DesiredState;
  /** Address of the profile schema for the first line, which editors read. */
  schema: string;
  /** Where the settings come from, for a comment: `the running service`. */
  origin: string;
}

const COLUMN = 100;

/** A commented YAML profile that changes nothing when it is applied where the settings came from. Secrets are left out. */
export function profileText({ settings, defaults, all, state, schema, origin }: ProfileText): string {
  const chosen = FIELDS.filter(
    ({ path }) => path !== 'version' && (all || !sameValue(path, leafAt(settings, path), leafAt(defaults, path))),
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
  let open: string[] = [];
  for (const field of chosen) {
    const names = field.path.split('.');
    const last = names.pop() ?? '';
    const shared = names.findIndex((name, index) => open[index] !== name);
    const from = shared === -1 ? names.length : shared;
    for (const [depth, name] of names.entries()) if (depth >= from) lines.push(`${indent(depth)}${scalar(name)}:`);
    open = names;
    const pad = indent(names.length);
    lines.push(...comment(field.description, pad));
    const value = leafAt(settings, field.path);
    if (field.sensitive) lines.push(...secretLines(last, names.at(-1) ?? '', pad));
    else if (value !== undefined) lines.push(...valueLines(last, value, pad));
  }
  lines.push('# started, stopped, or unmanaged to leave the backend as it is.', `state: ${state}`);
  return `${dropEmptySections(lines).join('\n')}\n`;
}

function indent(depth: number): string {
  return '  '.repeat(depth + 1);
}

function secretLines(name: string, section: string, pad: string): string[] {
  const variable = `${section}_${name}`.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
  return [`${pad}# A secret is never written out. To manage it:`, `${pad}# ${name}: { fromEnv: ${variable} }`];
}

function valueLines(name: string, value: JsonValue, pad: string): string[] {
  const key = `${pad}${scalar(name)}:`;
  if (Array.isArray(value) && value.length > 0) return [key, ...value.map((item) => `${pad}  - ${flow(item)}`)];
  if (isObject(value) && Object.keys(value).length > 0) {
    return [key, ...Object.entries(value).map(([inner, each]) => `${pad}  ${scalar(inner)}: ${flow(each)}`)];
  }
  return [`${key} ${flow(value)}`];
}

function flow(value: JsonValue): string {
  return typeof value === 'string' ? scalar(value) : JSON.stringify(value);
}

/** Plain where YAML 1.1 and 1.2 both read it as this text, else in JSON quotes, which are YAML too. */
function scalar(text: string): string {
  const plain =
    /^[A-Za-z/][\w./*-]*$|^9p(?:2000[.\w]*)?$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return plain ? text : JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, escaped);
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function comment(text: string, pad: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > COLUMN) lines.push(`${pad}# ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
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
