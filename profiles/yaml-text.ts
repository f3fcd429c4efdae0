import { isObject, type JsonValue } from '../src/json.ts';
import { escapedInLines } from '../src/settings/printable.ts';

const COLUMN = 100;
/** A key that is longer must be marked as one; the parser allows 1024 signs with quotation marks. */
const LONGEST_KEY = 1000;

/** Lines of nested sections, one leaf for each path; paths of one section must follow each other. */
export function sectionLines<T extends { path: string }>(
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

/** A key with its value: lists and objects below it, a line for each member. */
export function valueLines(name: string, value: JsonValue, pad: string): string[] {
  if (Array.isArray(value) && value.length > 0) {
    return [...keyLines(name, '', pad), ...value.map((item) => `${pad}  - ${flow(item)}`)];
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    const below = Object.entries(value).flatMap(([inner, each]) => keyLines(inner, ` ${flow(each)}`, `${pad}  `));
    return [...keyLines(name, '', pad), ...below];
  }
  return keyLines(name, ` ${flow(value)}`, pad);
}

/** A comment over as many lines as it needs. */
export function commentLines(text: string, pad: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > COLUMN) lines.push(`${pad}# ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Plain where YAML 1.1 and 1.2 both read it as this text, else in JSON quotes, which are YAML too. */
function scalar(text: string): string {
  const plain =
    /^[A-Za-z/][\w./*-]*$|^9p(?:2000[.\w]*)?$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return plain ? text : jsonText(text);
}

/** JSON that is read back as a document too: it holds no sign that one must not, and none that nobody sees. */
export function jsonText(value: JsonValue, indentation?: number): string {
  return escapedInLines(JSON.stringify(value, null, indentation));
}

function keyLines(name: string, value: string, pad: string): string[] {
  const key = scalar(name);
  return key.length <= LONGEST_KEY ? [`${pad}${key}:${value}`] : [`${pad}? ${key}`, `${pad}:${value}`];
}

function indent(depth: number): string {
  return '  '.repeat(depth + 1);
}

function flow(value: JsonValue): string {
  if (typeof value === 'string') return scalar(value);
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, inner]) => `${scalar(name)}: ${flow(inner)}`)
    .join(', ')} }`;
}
