/** An element of a document; texts and elements are never mixed in one. */
export interface Element {
  name: string;
  /** In the order in which they are written. */
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

/** The document with the line ends of Windows, in UTF-8. Line ends of texts become those of the file. */
export function xmlDocument(root: Element): string {
  const lines = ['<?xml version="1.0" encoding="utf-8"?>', ...linesOf(root, '')];
  return `${lines.join('\n')}\n`.replaceAll('\n', '\r\n');
}

function linesOf({ name, attributes, content }: Element, indent: string): string[] {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  const start = `${indent}<${name}${written.join('')}`;
  if (content.length === 0) return [`${start}/>`];
  if (typeof content === 'string') return [`${start}>${escaped(content)}</${name}>`];
  return [`${start}>`, ...content.flatMap((each) => linesOf(each, `${indent}  `)), `${indent}</${name}>`];
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? sign);
}
