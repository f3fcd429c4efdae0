import { createRequire } from 'node:module';
import { resolve } from 'node:path';

/** An element with its local name, without namespace. */
export interface XmlElement {
  tag: string;
  attributes: Record<string, string>;
  /** The text before the first child. */
  text: string;
  children: XmlElement[];
}

interface DomNode {
  nodeType: number;
  localName: string;
  data: string;
  childNodes: ArrayLike<DomNode>;
  attributes: ArrayLike<{ name: string; value: string }>;
}
interface DomParser {
  parseFromString(text: string, type: string): { documentElement: DomNode };
}

const ELEMENT = 1;
/** The parser that the property list library includes. */
const { DOMParser }: { DOMParser: new (options: { onError: (level: string, message: string) => void }) => DomParser } =
  createRequire(resolve('node_modules/plist/package.json'))('@xmldom/xmldom');

/** @throws Error for XML that is not well-formed. */
export function parseXml(text: string): XmlElement {
  const onError = (level: string, message: string): void => {
    throw new Error(`${level}: ${message}`);
  };
  return elementOf(new DOMParser({ onError }).parseFromString(text, 'text/xml').documentElement);
}

function elementOf(node: DomNode): XmlElement {
  const nodes = Array.from(node.childNodes);
  const first = nodes.findIndex(({ nodeType }) => nodeType === ELEMENT);
  const texts = nodes.slice(0, first === -1 ? nodes.length : first).map(({ data }) => data);
  return {
    tag: node.localName,
    attributes: Object.fromEntries(
      Array.from(node.attributes)
        .filter(({ name }) => !name.startsWith('xmlns'))
        .map(({ name, value }) => [name, value]),
    ),
    text: texts.join(''),
    children: nodes.filter(({ nodeType }) => nodeType === ELEMENT).map(elementOf),
  };
}

export function childrenOf(element: XmlElement, tag: string): XmlElement[] {
  return element.children.filter((child) => child.tag === tag);
}

/** @throws Error when there is none, or more than one. */
export function childOf(element: XmlElement, tag: string): XmlElement {
  const [child, ...others] = childrenOf(element, tag);
  if (!child || others.length > 0) throw new Error(`<${element.tag}> has not one <${tag}>`);
  return child;
}

/** The element and everything below it. */
export function everyElement(element: XmlElement): XmlElement[] {
  return [element, ...element.children.flatMap(everyElement)];
}
