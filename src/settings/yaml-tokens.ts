import { CST } from 'yaml';

/** A collection whose members are on lines of their own. */
export type Block = CST.BlockMap | CST.BlockSequence;

export function isBlock(token: CST.Token | null | undefined): token is Block {
  return token?.type === 'block-map' || token?.type === 'block-seq';
}

/** Creates a token that is written as this text. The parser would split it into several, so only `writtenTokens` may read it. */
export function rawToken(source: string): CST.SourceToken {
  return { type: 'space', offset: -1, indent: -1, source };
}

/** Returns the text of tokens, byte for byte. */
export function writtenTokens(tokens: Iterable<CST.Token>): string {
  let text = '';
  for (const token of tokens) text += CST.stringify(token);
  return text;
}

/**
 * Moves tokens between the members of a block, and of all blocks inside it, so that each member is whole lines: its `start` has the comments and
 * blank lines above it and its indentation. The parser leaves them in whatever it read last. The text stays the same.
 * @returns the tokens below the last member.
 */
export function splitIntoLines({ items }: Block, above: CST.SourceToken[] = []): CST.SourceToken[] {
  if (items[0]) items[0].start = [...above, ...items[0].start];
  for (const [index, item] of [...items.entries()]) {
    if (!isMember(item)) continue;
    const { value } = item;
    const head = item.sep ?? item.start;
    const below = isBlock(value) ? splitIntoLines(value, linesBelow(head)) : linesBelow(value ? endOf(value) : head);
    if (below.length === 0) continue;
    putAbove(items, index + 1, below);
  }
  const last = items.at(-1);
  if (!last || isMember(last)) return [];
  items.pop();
  return last.start;
}

/** True for a member; false for the comments and blank lines at the end of a collection, which the parser makes an item of. */
export function isMember({ start, key, sep, value }: CST.CollectionItem): boolean {
  return Boolean(key || sep || value) || !start.every(isTrivia);
}

/** Splits a start into the lines above a member, and the beginning of its own line. */
export function splitStart(start: readonly CST.SourceToken[]): [above: CST.SourceToken[], own: CST.SourceToken[]] {
  const own = start.findIndex((token) => !isTrivia(token));
  const newline = start.slice(0, own === -1 ? start.length : own).findLastIndex(({ type }) => type === 'newline');
  return [start.slice(0, newline + 1), start.slice(newline + 1)];
}

/** True for comments, line ends and spaces. */
export function isTrivia({ type }: CST.SourceToken): boolean {
  return type === 'space' || type === 'comment' || type === 'newline';
}

/** Returns the tokens that follow a value on its line, and further lines. */
function endOf(value: CST.Token): CST.SourceToken[] {
  return ('end' in value && value.end) || [];
}

/** Removes and returns the tokens on the lines below the one with a member's mark, or with the end of a value. */
function linesBelow(tokens: CST.SourceToken[]): CST.SourceToken[] {
  const mark = tokens.findLastIndex((token) => !isTrivia(token));
  const newline = tokens.findIndex(({ type }, index) => type === 'newline' && index > mark);
  return newline === -1 ? [] : tokens.splice(newline + 1);
}

/** Removes a member but keeps the lines above it. */
export function removeMember(items: CST.CollectionItem[], index: number): void {
  const [{ start, value } = { start: [] }] = items.splice(index, 1);
  const inside = isBlock(value) ? value.items.filter((item) => !isMember(item)).flatMap((item) => item.start) : [];
  putAbove(items, index, [...splitStart(start)[0], ...inside]);
}

function putAbove(items: CST.CollectionItem[], index: number, lines: readonly CST.SourceToken[]): void {
  const next = items[index];
  if (next) next.start = [...lines, ...next.start];
  else items.push({ start: [...lines] });
}
