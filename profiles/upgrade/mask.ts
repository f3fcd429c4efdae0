/** A piece of a text, in UTF-16 units. */
export interface Piece {
  offset: number;
  length: number;
}

const MASK = '********';
/** Characters from which on a secret is looked for in all of the text. */
const LONG_SECRET = 6;

/** The text with a mask in the place of each piece. They may come in any order, and none may lie over another. */
export function withoutPieces(text: string, pieces: readonly Piece[]): string {
  return [...pieces]
    .sort((a, b) => b.offset - a.offset)
    .reduce((result, { offset, length }) => `${result.slice(0, offset)}${MASK}${result.slice(offset + length)}`, text);
}

/** The text without what repeats a secret and is long enough to be told from words. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= LONG_SECRET)
    .reduce((result, secret) => result.replaceAll(secret, MASK), text);
}
