import { isDeepStrictEqual } from 'node:util';
import { CST, type Document, isMap, isScalar, Parser, parseAllDocuments, visit } from 'yaml';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { tooMuchYaml } from '../../settings/parse.ts';
import {
  isMember,
  rawToken,
  removeMember,
  splitIntoLines,
  splitStart,
  writtenTokens,
} from '../../settings/yaml-tokens.ts';

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
/** Members of every kubeconfig, which are added to a blank one. */
const HEADER = { apiVersion: 'v1', kind: 'Config' };
/** Maximum tokens of a file; a cluster with its user and context has about a hundred. It is read several times for one change. */
const MOST_PARTS = 100_000;

/**
 * Adds the entry, and selects it if nothing is selected. The rest of the text stays byte for byte. Keys that were empty or absent get a comment that
 * says so, from which `withoutEntry` restores the text.
 * @returns `foreign` when a cluster of that name runs elsewhere.
 * @throws RdError `ERR_IO` for an invalid kubeconfig, and for a layout that cannot be edited safely or could not be restored.
 */
export function withEntry(text: string | undefined, entry: KubeEntry): string | 'foreign' {
  if (text === undefined) return freshText(entry);
  const { name } = entry;
  const value = read(text);
  const named = listOf(value, 'clusters').find((item) => item.name === name);
  if (named && !isLocal(named)) return 'foreign';
  const edit = new Edit(text, name);
  const header = isBlank(text) ? HEADER : {};
  for (const [key, written] of Object.entries(header)) edit.append(key, ` ${written}`);
  const expected: Record<string, unknown> = { ...header, ...value };
  let isNew = value[SELECTED] !== name && !text.includes(endOfMark(name));
  for (const kind of KINDS) {
    const [list, item] = [listOf(value, kind), itemOf(kind, entry)];
    const own = placesOf(list, name);
    const [first = list.length, ...more] = own;
    if (own.length > 0) isNew = false;
    if (own.length === 1 && isDeepStrictEqual(list[first], item)) continue;
    edit.removeItems(kind, more);
    edit.putItem(kind, first, item);
    expected[kind] = list.toSpliced(first, 1, item).filter((each) => each === item || each.name !== name);
  }
  if (!value[SELECTED]) {
    expected[SELECTED] = name;
    edit.select();
  }
  const after = checked(edit.text(), expected);
  if (isNew && withoutEntry(after, name) !== text) throw uncertain();
  return after;
}

/** Returns the cluster of that name and its user. Throws `ERR_IO` for an invalid kubeconfig. */
export function entryIn(text: string, name: string): KubeEntry | undefined {
  const value = read(text);
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

/**
 * Returns the text without the entries of that name; undefined when nothing else was in it. Throws `ERR_IO` for an invalid kubeconfig or a layout
 * that cannot be edited safely.
 */
export function withoutEntry(text: string, name: string): string | undefined {
  const value = read(text);
  const edit = new Edit(text, name);
  const expected: Record<string, unknown> = { ...value };
  for (const kind of KINDS) {
    const list = listOf(value, kind);
    const own = placesOf(list, name);
    if (own.length === 0) continue;
    expected[kind] = list.filter((item) => item.name !== name);
    edit.removeItems(kind, own);
    const isEmptied = own.length === list.length;
    if (!edit.unmark(kind, isEmptied) && isEmptied) edit.emptyList(kind);
  }
  if (value[SELECTED] === name) {
    delete expected[SELECTED];
    if (!edit.unmark(SELECTED, true)) edit.deselect();
  }
  const hasMore = !isEmpty(expected);
  for (const key of Object.keys(HEADER)) if (edit.unmark(key, !hasMore) && !hasMore) delete expected[key];
  const rest = checked(edit.text(), expected);
  return hasMore || rest.includes('#') || text.includes(endOfMark(name)) ? rest : undefined;
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
  const header = Object.entries(HEADER).map(([key, value]) => `${key}: ${value}\n`);
  const lists = KINDS.map((kind) => `${kind}:\n${blockText(itemOf(kind, entry), '', '\n')}`);
  return `${[...header, ...lists].join('')}${SELECTED}: ${entry.name}\n`;
}

function isEmpty(value: Record<string, unknown>): boolean {
  return Object.entries(value).every(([key, member]) => {
    if (Object.hasOwn(HEADER, key)) return true;
    if (isObject(member)) return Object.keys(member).length === 0;
    return !member || (Array.isArray(member) && member.length === 0);
  });
}

function isBlank(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(?:#|$)/.test(line));
}

function read(text: string): Record<string, unknown> {
  if (isBlank(text)) return {};
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
  return value;
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

/** Returns the positions of the items of that name. */
function placesOf(list: readonly Record<string, unknown>[], name: string): number[] {
  return list.flatMap((item, index) => (item.name === name ? [index] : []));
}

/** Returns the text after verifying that nothing else has changed; otherwise throws, because the layout is unsupported. */
function checked(text: string, expected: Record<string, unknown>): string {
  const strip = (value: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(value).filter(([, member]) => member && !isDeepStrictEqual(member, [])));
  let reparsed: Record<string, unknown> | undefined;
  try {
    reparsed = read(text);
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
  }
  if (reparsed && isDeepStrictEqual(strip(reparsed), strip(expected))) return text;
  throw uncertain();
}

const ABSENT = 'absent';
const EMPTY = 'empty';

/** Returns the end of a mark: the comment `# null before rdctl` behind a key that had this value, none (`empty`), or was `absent`. */
function endOfMark(name: string): string {
  return ` before ${name}`;
}

type PairTokens = Extract<CST.BlockMap['items'][number], { sep: CST.SourceToken[] }>;

/** Edits the tokens of a file, for one name. All other tokens stay as they are. */
class Edit {
  private readonly name: string;
  private readonly tokens: CST.Token[];
  private readonly root: CST.BlockMap = { type: 'block-map', offset: 0, indent: 0, items: [] };
  private readonly newline: string;
  /** Whether the last line lacks its end, which it keeps lacking. */
  private readonly isOpen: boolean;

  /** @param text a text that `read` accepts. */
  constructor(text: string, name: string) {
    this.name = name;
    this.newline = text.includes('\r\n') ? '\r\n' : '\n';
    this.isOpen = !text.endsWith('\n');
    this.tokens = [...new Parser().parse(this.isOpen && text !== '' ? text + this.newline : text)];
    for (const token of this.tokens) {
      if (token.type === 'document' && token.value?.type === 'block-map') this.root = token.value;
    }
    this.root.items.push({ start: splitIntoLines(this.root) });
  }

  text(): string {
    const text = writtenTokens(this.tokens);
    return this.isOpen && text.endsWith(this.newline) ? text.slice(0, -this.newline.length) : text;
  }

  /** Adds a key that was absent, with its value or the lines of its list. */
  append(key: string, value: string, lines = ''): void {
    const mark = `# ${ABSENT}${endOfMark(this.name)}`;
    this.tokens.push(rawToken(`${this.indentation(this.root)}${key}:${value} ${mark}${this.newline}${lines}`));
  }

  /** Replaces the item with this index, or adds one after the last. */
  putItem(kind: Kind, index: number, item: Item): void {
    const pair = this.pair(kind);
    const list = pair?.value;
    if (list?.type === 'block-seq') {
      const old = list.items[index];
      const lines = rawToken(blockText(item, this.indentation(list), this.newline));
      if (old && isMember(old)) list.items[index] = { start: [...splitStart(old.start)[0], lines] };
      else list.items.splice(index, 0, { start: [lines] });
      return;
    }
    if (list?.type === 'flow-collection' && list.items.some(isMember)) throw inBrackets();
    const lines = blockText(item, this.indentation(this.root), this.newline);
    if (pair) {
      this.fill(pair, '');
      pair.sep.push(rawToken(lines));
    } else this.append(kind, '', lines);
  }

  removeItems(kind: Kind, indexes: readonly number[]): void {
    const list = this.pair(kind)?.value;
    if (indexes.length === 0) return;
    if (list?.type !== 'block-seq') throw inBrackets();
    for (const index of indexes.toReversed()) removeMember(list.items, index);
  }

  emptyList(kind: Kind): void {
    const pair = this.pair(kind);
    const colon = pair?.sep.findIndex(({ type }) => type === 'map-value-ind') ?? -1;
    pair?.sep.splice(colon + 1, 0, rawToken(' []'));
  }

  select(): void {
    const pair = this.pair(SELECTED);
    if (pair) this.fill(pair, `${this.name} `);
    else this.tokens.push(rawToken(`${this.indentation(this.root)}${SELECTED}: ${this.name}${this.newline}`));
  }

  /** Deselects: removes the key if it is the last line, which we added; elsewhere it was empty before. */
  deselect(): void {
    const pair = this.pair(SELECTED);
    if (!pair?.value) return;
    const line = CST.stringify({ ...pair, start: splitStart(pair.start)[1] });
    if (`\n${writtenTokens(this.tokens)}`.trimEnd().endsWith(`\n${line.trimEnd()}`)) this.remove(pair);
    else CST.setScalarValue(pair.value, '', { type: 'QUOTE_DOUBLE' });
  }

  /**
   * Removes the mark behind a key.
   * @param isEmptied whether the key gets back its previous value, or is removed if it was absent.
   * @returns false without a mark.
   */
  unmark(key: string, isEmptied: boolean): boolean {
    const pair = this.pair(key);
    const name = this.name.replace(/\W/g, '\\$&');
    const mark = new RegExp(`([ \\t])(?:${name} )?# (\\S.*?)${endOfMark(name)}(?!\\S)`);
    const [line = '', space = '', was] = mark.exec(pair ? lineOf(pair) : '') ?? [];
    if (!pair || was === undefined) return false;
    const restored = !isEmptied || was === EMPTY ? '' : `${space}${was}`;
    if (isEmptied && was === ABSENT) this.remove(pair);
    else
      setLine(
        pair,
        lineOf(pair).replace(line, () => restored),
      );
    return true;
  }

  private pair(key: string): PairTokens | undefined {
    return this.root.items.find(
      (item): item is PairTokens => item.sep !== undefined && CST.resolveAsScalar(item.key)?.value === key,
    );
  }

  /** Replaces an empty value by a text and a mark. */
  private fill(pair: PairTokens, text: string): void {
    const line = lineOf(pair);
    const value = writtenTokens(pair.sep).length;
    const [was = ''] = /^(?:\[[ \t]*\]|\S+)/.exec(line.slice(value)) ?? [];
    const at = was === '' ? line.indexOf(':') + 1 : value;
    const mark = `${was === '' ? ' ' : ''}${text}# ${was || EMPTY}${endOfMark(this.name)}`;
    setLine(pair, `${line.slice(0, at)}${mark}${line.slice(at + was.length)}`);
  }

  private remove(pair: PairTokens): void {
    removeMember(this.root.items, this.root.items.indexOf(pair));
  }

  private indentation({ indent }: CST.BlockMap | CST.BlockSequence): string {
    return ' '.repeat(indent);
  }
}

/** Returns the text behind a key on its line. */
function lineOf({ sep, value }: PairTokens): string {
  return `${writtenTokens(sep)}${value && value.type !== 'block-seq' ? CST.stringify(value) : ''}`;
}

function setLine(pair: PairTokens, text: string): void {
  pair.sep = [rawToken(text)];
  if (pair.value?.type !== 'block-seq') delete pair.value;
}

function blockText(item: Item, indent: string, newline: string): string {
  const lines = Object.entries(item).flatMap(([key, value]) =>
    typeof value === 'string'
      ? [`${key}: ${scalarText(value)}`]
      : [`${key}:`, ...Object.entries(value).map(([inner, text]) => `  ${inner}: ${scalarText(text)}`)],
  );
  return lines.map((line, index) => `${indent}${index === 0 ? '- ' : '  '}${line}${newline}`).join('');
}

function scalarText(value: string): string {
  return /^[A-Za-z][\w+/=.:-]*$/.test(value) && !/^(?:true|false|null|yes|no|on|off)$/i.test(value)
    ? value
    : JSON.stringify(value);
}

function unusable(why: string): RdError {
  return new RdError('ERR_IO', `the kubeconfig was not changed: ${why}`, {
    advice: 'Correct the file; the context is made at the next start of the cluster.',
  });
}

function uncertain(): RdError {
  return unusable('its layout is one that cannot be changed with certainty');
}

function inBrackets(): RdError {
  return unusable('it has lists in the style of JSON');
}
