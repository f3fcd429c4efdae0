import { isNode, parseDocument, visit } from 'yaml';
import type { JsonValue } from '../../src/json.ts';
import { flowText } from './scalar-text.ts';

/** The names of the anchors that aliases of a document refer to. */
export function aliasedAnchors(text: string): string[] {
  const names = new Set<string>();
  visit(parseDocument(text, { uniqueKeys: false, logLevel: 'silent' }), {
    Alias: (_key, alias) => {
      names.add(alias.source);
    },
  });
  return [...names];
}

/** The text with what they stand for in the place of the aliases of these anchors. */
export function withoutAliases(text: string, anchors: readonly string[]): string {
  const document = parseDocument(text, { uniqueKeys: false, logLevel: 'silent' });
  const places: { from: number; to: number; written: string }[] = [];
  visit(document, {
    Alias: (_key, alias) => {
      const node = alias.resolve(document);
      if (!anchors.includes(alias.source) || !isNode(node) || !alias.range) return;
      const value: JsonValue = JSON.parse(JSON.stringify(node.toJS(document)));
      places.push({ from: alias.range[0], to: alias.range[1], written: flowText(value, '') });
    },
  });
  return places.reduceRight(
    (result, { from, to, written }) => result.slice(0, from) + written + result.slice(to),
    text,
  );
}
