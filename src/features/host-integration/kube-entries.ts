import { isDeepStrictEqual } from 'node:util';
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  parseAllDocuments,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { tooMuchYaml } from '../../settings/parse.ts';

/** A cluster, a user and their context under one name. Members of the kubeconfig format; values may be secrets. */
export interface KubeEntry {
  name: string;
  cluster: Readonly<Record<string, string>>;
  user: Readonly<Record<string, string>>;
}

type Kind = 'clusters' | 'contexts' | 'users';
type Item = Record<string, string | Readonly<Record<string, string>>>;

const KINDS: readonly Kind[] = ['clusters', 'contexts', 'users'];
const SELECTED = 'current-context';
/** Tokens, of which a cluster with its user and context has about a hundred; it is read several times for one change. */
const MOST_PARTS = 100_000;

/**
 * Adds the entry, and selects it where nothing is selected. The rest of the text stays byte for byte.
 * @returns `foreign` when a cluster of that name runs elsewhere.
 * @throws RdError `ERR_IO` for an invalid kubeconfig, and for a layout that cannot be edited safely.
 */
export function withEntry(text: string | undefined, entry: KubeEntry): string | 'foreign' {
  if (text === undefined) return freshText(entry);
  if (text.split('\n').every((line) => /^\s*(?:#|$)/.test(line))) {
    return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${freshText(entry)}`;
  }
  const before = read(text);
  const named = listOf(before.value, 'clusters').find((item) => item.name === entry.name);
  if (named && !isLocal(named)) return 'foreign';
  const expected: Record<string, unknown> = { ...before.value };
  let after = text;
  for (const kind of KINDS) {
    const item = itemOf(kind, entry);
    const own = listOf(before.value, kind).filter(({ name }) => name === entry.name);
    if (own.length === 1 && isDeepStrictEqual(own[0], item)) continue;
    expected[kind] = [...listOf(before.value, kind).filter(({ name }) => name !== entry.name), item];
    after = inserted(own.length > 0 ? removed(after, kind, entry.name) : after, kind, item);
  }
  if (!before.value[SELECTED]) {
    expected[SELECTED] = entry.name;
    after = selecting(after, entry.name);
  }
  return checked(after, expected);
}

/** The cluster of that name and its user in a text. Throws as `withEntry`. */
export function entryIn(text: string, name: string): KubeEntry | undefined {
  const { value } = read(text);
  const member = (kind: Kind, key: string): Record<string, string> | undefined => {
    const inner = listOf(value, kind).find((item) => item.name === name)?.[key];
    if (!isObject(inner)) return undefined;
    return Object.fromEntries(
      Object.entries(inner).flatMap(([at, text]) => (typeof text === 'string' ? [[at, text] as const] : [])),
    );
  };
  const cluster = member('clusters', 'cluster');
  return cluster && { name, cluster, user: member('users', 'user') ?? {} };
}

/** The text without the entries of that name; undefined when nothing else was in it. Throws as `withEntry`. */
export function withoutEntry(text: string, name: string): string | undefined {
  const before = read(text);
  const expected: Record<string, unknown> = { ...before.value };
  let after = text;
  for (const kind of KINDS) {
    const all = listOf(before.value, kind);
    const rest = all.filter((item) => item.name !== name);
    if (rest.length === all.length) continue;
    expected[kind] = rest;
    after = removed(after, kind, name);
  }
  if (before.value[SELECTED] === name) {
    delete expected[SELECTED];
    after = deselecting(after);
  }
  const rest = checked(after, expected);
  const hasComment = rest.includes('#');
  return isEmpty(expected) && !hasComment ? undefined : rest;
}

function isLocal(item: Record<string, unknown>): boolean {
  const server = isObject(item.cluster) ? item.cluster.server : undefined;
  return typeof server === 'string' && /^https:\/\/127\.0\.0\.1(:\d+)?\/?$/.test(server);
}

function itemOf(kind: Kind, { name, cluster, user }: KubeEntry): Item {
  switch (kind) {
    case 'clusters':
      return { cluster, name };
    case 'contexts':
      return { context: { cluster: name, user: name }, name };
    case 'users':
      return { name, user };
  }
}

function freshText(entry: KubeEntry): string {
  const lists = KINDS.map((kind) => `${kind}:\n${blockText(itemOf(kind, entry), '', '\n')}\n`);
  return `apiVersion: v1\nkind: Config\n${lists.join('')}${SELECTED}: ${entry.name}\n`;
}

function isEmpty(value: Record<string, unknown>): boolean {
  return Object.entries(value).every(([key, member]) => {
    if (key === 'apiVersion' || key === 'kind') return true;
    if (isObject(member)) return Object.keys(member).length === 0;
    return !member || (Array.isArray(member) && member.length === 0);
  });
}

interface Read {
  root: YAMLMap;
  value: Record<string, unknown>;
}

function read(text: string): Read {
  const tooMuch = tooMuchYaml(text, MOST_PARTS);
  if (tooMuch !== undefined) throw unusable(tooMuch);
  // The library's own check for duplicate keys is quadratic, and its warnings quote the text.
  const documents = parseAllDocuments(text, { uniqueKeys: false, logLevel: 'silent' });
  const [document] = documents;
  // Parser errors quote the text, which contains keys.
  if (!document || !('contents' in document) || documents.length !== 1) throw unusable('it is not one document');
  if (document.errors.length > 0) {
    const at = document.errors[0]?.linePos?.[0];
    throw unusable(`it is not YAML${at ? ` (line ${at.line}, column ${at.col})` : ''}`);
  }
  if (hasKeyTwice(document)) throw unusable('it is not YAML: a key is in it twice');
  const root = document.contents;
  const value = plainValue(document);
  if (!isMap(root) || !isObject(value)) throw unusable('it does not hold a mapping');
  if (root.flow) throw unusable('it is written in the style of JSON');
  for (const kind of KINDS) {
    const list = value[kind];
    if (list !== undefined && list !== null && !Array.isArray(list)) throw unusable(`"${kind}" in it is not a list`);
  }
  return { root, value };
}

function hasKeyTwice(document: Document): boolean {
  let found = false;
  visit(document, {
    Map(_, { items }) {
      const names = items.map(({ key }) => (isScalar(key) ? key.value : key));
      found ||= new Set(names).size < names.length;
    },
  });
  return found;
}

function plainValue(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    // The library throws errors of its own, which name the anchor.
    throw unusable('an alias in it has no anchor, or the aliases repeat too much');
  }
}

function listOf(value: Record<string, unknown>, kind: Kind): Record<string, unknown>[] {
  const list = value[kind];
  return Array.isArray(list) ? list.map((item: unknown) => (isObject(item) ? item : { item })) : [];
}

/** Verifies that nothing else has changed; otherwise the layout is unsupported. */
function checked(text: string, expected: Record<string, unknown>): string {
  const strip = (value: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(value).filter(([, member]) => member && !isDeepStrictEqual(member, [])));
  let reparsed: Record<string, unknown> | undefined;
  try {
    reparsed = read(text).value;
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
  }
  if (reparsed && isDeepStrictEqual(strip(reparsed), strip(expected))) return text;
  throw unusable('its layout is one that cannot be changed with certainty');
}

function inserted(text: string, kind: Kind, item: Item): string {
  const newline = newlineOf(text);
  const pair = pairOf(read(text).root, kind);
  if (!pair) {
    const end = text.endsWith('\n') ? text : text + newline;
    return `${end}${kind}:${newline}${blockText(item, '', newline)}${newline}`;
  }
  const list = pair.value;
  if (isSeq(list) && list.items.length > 0) {
    const dash = dashOf(text, list, 0);
    const indent = ' '.repeat(dash - lineStart(text, dash));
    return afterLine(text, endOf(list.items.at(-1)), blockText(item, indent, newline), newline);
  }
  const [from, to] = [startOf(list), endOf(list)];
  // A comment after the empty list stays on its line.
  const bare = splice(text, from, to, '');
  const colon = bare.lastIndexOf(':', from);
  const trimmed = bare.slice(0, colon + 1) + bare.slice(colon + 1).replace(/^[ \t]+(?=\r?\n|$)/, '');
  return afterLine(trimmed, colon + 1, blockText(item, '', newline), newline);
}

function removed(text: string, kind: Kind, name: string): string {
  for (let now = text; ; ) {
    const pair = pairOf(read(now).root, kind);
    const list = pair?.value;
    if (!pair || !isSeq(list)) return now;
    const index = list.items.findIndex((item) => isMap(item) && item.get('name') === name);
    if (index < 0) return now;
    now = withoutItem(now, pair, list, index);
  }
}

function withoutItem(text: string, pair: Pair, list: YAMLSeq, index: number): string {
  const from = lineStart(text, dashOf(text, list, index));
  const without = splice(text, from, lineEnd(text, endOf(list.items[index])), '');
  if (list.items.length > 1) return without;
  const colon = without.indexOf(':', endOf(pair.key));
  return splice(without, colon + 1, colon + 1, ' []');
}

function selecting(text: string, name: string): string {
  const newline = newlineOf(text);
  const pair = pairOf(read(text).root, SELECTED);
  if (pair) {
    const empty = startOf(pair.value) === endOf(pair.value);
    if (!empty) return splice(text, startOf(pair.value), endOf(pair.value), name);
    const colon = text.indexOf(':', endOf(pair.key));
    return splice(text, colon + 1, colon + 1, ` ${name}`);
  }
  return `${text.endsWith('\n') ? text : text + newline}${SELECTED}: ${name}${newline}`;
}

/** If it is the last line, we added it; elsewhere it was empty before. */
function deselecting(text: string): string {
  const pair = pairOf(read(text).root, SELECTED);
  if (!pair) return text;
  const [from, to] = [startOf(pair.key), endOf(pair.value)];
  if (text.slice(lineEnd(text, to)).trim() !== '') return splice(text, startOf(pair.value), to, '""');
  return splice(text, lineStart(text, from), lineEnd(text, to), '');
}

function blockText(item: Item, indent: string, newline: string): string {
  const lines = Object.entries(item).flatMap(([key, value]) =>
    typeof value === 'string'
      ? [`${key}: ${scalarText(value)}`]
      : [`${key}:`, ...Object.entries(value).map(([inner, text]) => `  ${inner}: ${scalarText(text)}`)],
  );
  return lines.map((line, index) => `${indent}${index === 0 ? '- ' : '  '}${line}`).join(newline);
}

function scalarText(value: string): string {
  return /^[A-Za-z][\w+/=.:-]*$/.test(value) && !/^(?:true|false|null|yes|no|on|off)$/i.test(value)
    ? value
    : JSON.stringify(value);
}

function pairOf(root: YAMLMap, key: string): Pair | undefined {
  return root.items.find((pair) => isScalar(pair.key) && pair.key.value === key);
}

function rangeOf(node: unknown): readonly number[] {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  if (!Array.isArray(range)) throw unusable('its layout is not understood');
  return range;
}

const startOf = (node: unknown): number => rangeOf(node)[0] ?? 0;
const endOf = (node: unknown): number => rangeOf(node)[1] ?? 0;

/** Offset of an item's dash. */
function dashOf(text: string, list: YAMLSeq, index: number): number {
  if (list.flow) throw unusable('it has lists in the style of JSON');
  return text.lastIndexOf('-', startOf(list.items[index]) - 1);
}

function newlineOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

function splice(text: string, from: number, to: number, put: string): string {
  return text.slice(0, from) + put + text.slice(to);
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

/** Offset after the end of the line; at the start of a line, after the previous one. */
function lineEnd(text: string, at: number): number {
  if (text[at - 1] === '\n') return at;
  const next = text.indexOf('\n', at);
  return next < 0 ? text.length : next + 1;
}

function afterLine(text: string, at: number, put: string, newline: string): string {
  const end = lineEnd(text, at);
  const before = text.slice(0, end);
  return `${before}${before.endsWith('\n') ? '' : newline}${put}${newline}${text.slice(end)}`;
}

function unusable(why: string): RdError {
  return new RdError('ERR_IO', `the kubeconfig was not changed: ${why}`, {
    advice: 'Correct the file; the context is made at the next start of the cluster.',
  });
}
