import { quotedName } from '../settings/printable.ts';
import { plistProblem } from './plist-text.ts';
import { plistTokens } from './plist-tokens.ts';

/** What a property list holds. Dictionaries are maps: any text may be a key, `__proto__` too. */
export type PlistValue = boolean | number | string | readonly PlistValue[] | PlistDictionary | PlistOther;
export type PlistDictionary = ReadonlyMap<string, PlistValue>;
/** Something that no setting can be. */
export interface PlistOther {
  /** With its article: `a date`. */
  other: string;
}

export function isDictionary(value: PlistValue | undefined): value is PlistDictionary {
  return value instanceof Map;
}

export function isOther(value: PlistValue): value is PlistOther {
  return typeof value === 'object' && 'other' in value;
}

/**
 * Reads a property list in XML.
 * @throws Error with a clause that says what is wrong and in which line. It quotes nothing but keys: a value may be a secret.
 */
export async function xmlPlist(text: string): Promise<PlistValue> {
  const problem = plistProblem(text);
  if (problem !== undefined) throw new Error(problem);
  const { parse } = await import('plist');
  let value: unknown;
  try {
    value = parse(withNumberedKeys(text));
  } catch {
    // The parser's message may quote the text, which may hold a password, and so it is not kept as a cause.
    throw new Error('it is not a property list');
  }
  return asValue(value);
}

/**
 * Signs like others in XML 1.0. The parser makes line feeds of the first three, as XML 1.1 asks for two of them, and writes a
 * warning to the terminal at the last one.
 */
const MISREAD = /[\u0085\u2028\u2029\ufffd]/g;

/**
 * The same list with a number in front of each key, without comments and character data: the parser refuses a key that would
 * reach the prototype of its objects, takes the first piece of a key for the whole, and passes over a key that stands twice.
 */
function withNumberedKeys(text: string): string {
  const pieces: string[] = [];
  let key = 0;
  for (const token of plistTokens(text)) {
    if (token.kind === 'text') pieces.push(token.text);
    else if (token.kind === 'characters') pieces.push(escaped(token.text));
    else if (token.kind === 'tag') {
      const { tag, end, empty } = token;
      if (tag === 'key' && !end) pieces.push(`<key>${key++}:${empty ? '</key>' : ''}`);
      // What stands beside the name of a tag means nothing, and the parser may complain about it to the terminal.
      else pieces.push(`<${end ? '/' : ''}${tag}${empty ? '/' : ''}>`);
    }
  }
  return pieces.join('').replace(MISREAD, (sign) => `&#x${sign.charCodeAt(0).toString(16)};`);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function asValue(value: unknown): PlistValue {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return numberOf(value);
  if (Array.isArray(value)) return value.map(asValue);
  if (value instanceof Date) return { other: 'a date' };
  if (value instanceof Uint8Array) return { other: 'data' };
  if (typeof value !== 'object' || value === null) return { other: 'null' };
  const dictionary = new Map<string, PlistValue>();
  for (const [numbered, inner] of Object.entries(value)) {
    const key = numbered.slice(numbered.indexOf(':') + 1);
    if (dictionary.has(key)) throw new Error(`the key ${quotedName(key)} stands twice in one dictionary`);
    dictionary.set(key, asValue(inner));
  }
  return dictionary;
}

/** A number that JSON can hold. An integer of more than 53 bits is not exact, as it is not in JSON; no setting takes one. */
export function numberOf(value: number): number | PlistOther {
  return Number.isFinite(value) ? value : { other: 'not a finite number' };
}
