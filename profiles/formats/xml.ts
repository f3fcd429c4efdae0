const REFERENCES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
  '\t': '&#x9;',
  '\n': '&#xA;',
  '\r': '&#xD;',
};
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them.
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f]/;

/** Escapes text between tags with the same references as the compatible tool. Check `xmlProblem` first. */
export function xmlText(text: string): string {
  return text.replace(/[&<>"'\t\n\r]/g, (char) => REFERENCES[char] ?? char);
}

/**
 * Returns the reason why XML 1.0 cannot represent a text, as a clause. Character references are no way out, because they may not refer to such
 * characters either.
 */
export function xmlProblem(text: string): string | undefined {
  const control = CONTROL.exec(text)?.[0];
  if (control !== undefined) return `XML cannot represent the control character ${codePoint(control)}`;
  const lone = /\p{Cs}/u.exec(text)?.[0];
  if (lone !== undefined) return `XML cannot represent an unpaired surrogate (${codePoint(lone)})`;
  const none = /[\ufffe\uffff]/.exec(text)?.[0];
  return none === undefined ? undefined : `XML cannot represent ${codePoint(none)}, which is not a character`;
}

/** Formats a code point: `U+0007`. */
function codePoint(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** An element with either text or child elements. An XML library would not make this shorter, and there is none for ADMX. */
export interface Element {
  name: string;
  /** Attributes in output order. */
  attributes: Readonly<Record<string, string | number>>;
  content: readonly Element[] | string;
}

export function element(
  name: string,
  attributes: Element['attributes'],
  content: readonly Element[] | string = [],
): Element {
  return { name, attributes, content };
}

/** Formats the document in UTF-8 with Windows line ends, even within texts. */
export function xmlDocument(root: Element): string {
  const lines = ['<?xml version="1.0" encoding="utf-8"?>', ...linesOf(root, '')];
  return `${lines.join('\n')}\n`.replaceAll('\n', '\r\n');
}

function linesOf({ name, attributes, content }: Element, indent: string): string[] {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapedText(String(value))}"`);
  const start = `${indent}<${name}${written.join('')}`;
  if (content.length === 0) return [`${start}/>`];
  if (typeof content === 'string') return [`${start}>${escapedText(content)}</${name}>`];
  return [`${start}>`, ...content.flatMap((each) => linesOf(each, `${indent}  `)), `${indent}</${name}>`];
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapedText(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ENTITIES[char] ?? char);
}
