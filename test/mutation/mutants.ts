import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** One small mistake that a developer could make. */
export interface Mutant {
  id: number;
  file: string;
  line: number;
  /** What was changed, with the text before and after. */
  what: string;
  /** The part of the file that is replaced; the text chooses at run time between the two. */
  start: number;
  end: number;
  replacement: (reached: string) => string;
}

/** Where decisions are made, and formats are parsed and written. */
const FOLDERS = ['src/plan', 'src/settings', 'src/reconcile', 'profiles/formats'];

type Site = Omit<Mutant, 'id' | 'file' | 'line'> & { node: ts.Node };

const OTHER: Partial<Record<ts.SyntaxKind, string>> = {
  [ts.SyntaxKind.AmpersandAmpersandToken]: '||',
  [ts.SyntaxKind.BarBarToken]: '&&',
  [ts.SyntaxKind.LessThanToken]: '<=',
  [ts.SyntaxKind.LessThanEqualsToken]: '<',
  [ts.SyntaxKind.GreaterThanToken]: '>=',
  [ts.SyntaxKind.GreaterThanEqualsToken]: '>',
  [ts.SyntaxKind.EqualsEqualsEqualsToken]: '!==',
  [ts.SyntaxKind.ExclamationEqualsEqualsToken]: '===',
};

/**
 * `count` mutants of the current source, none inside another. The choice depends only on the text of each, so that a change
 * elsewhere keeps the others in the sample.
 */
export function sampleMutants(count: number): Mutant[] {
  const all = FOLDERS.flatMap(sources).flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
    return sites(source).map(({ node, ...site }) => {
      const line = source.getLineAndCharacterOfPosition(site.start).line + 1;
      const rank = createHash('sha256')
        .update(`${site.what}\n${textAround(node)}`)
        .digest('hex');
      return { ...site, file, line, rank };
    });
  });
  all.sort((one, other) => (one.rank < other.rank ? -1 : 1));
  const chosen: typeof all = [];
  for (const site of all) {
    if (chosen.length === count) break;
    if (!chosen.some((other) => other.file === site.file && site.start < other.end && other.start < site.end))
      chosen.push(site);
  }
  return chosen.map(({ rank, ...site }, id) => ({ ...site, id }));
}

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.gen.ts'))
    .map((name) => join(folder, name))
    .sort();
}

/** The statement of a node: distinguishes nodes with the same text. */
function textAround(node: ts.Node): string {
  let around = node;
  while (around.parent && !ts.isStatement(around)) around = around.parent;
  return around.getText();
}

function sites(source: ts.SourceFile): Site[] {
  const found: Site[] = [];
  const add = (node: ts.Node, after: string, replacement: Mutant['replacement']) => {
    const what = `${short(node.getText())} → ${short(after)}`;
    found.push({ node, what, start: node.getStart(), end: node.getEnd(), replacement });
  };
  /** An expression that changes when the mutant is active. */
  const swap = (node: ts.Node, after: string) =>
    add(node, after, (reached) => `(${reached} ? (${after}) : (${node.getText()}))`);
  const member = (node: ts.PropertyAccessExpression, after: string) => {
    const start = node.name.getStart() - (node.questionDotToken ? 0 : 1);
    const replacement = (reached: string) => `[${reached} ? '${after}' : '${node.name.text}']`;
    found.push({ node, what: `${node.name.text} → ${after}`, start, end: node.getEnd(), replacement });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node)) return;
    if (ts.isIfStatement(node) || ts.isWhileStatement(node)) swap(node.expression, `!(${node.expression.getText()})`);
    if (ts.isConditionalExpression(node)) swap(node.condition, `!(${node.condition.getText()})`);
    if (ts.isBinaryExpression(node)) {
      const other = OTHER[node.operatorToken.kind];
      if (other) swap(node, `${node.left.getText()} ${other} ${node.right.getText()}`);
      const byOne = /^[+-]$/.test(node.operatorToken.getText()) && ts.isNumericLiteral(node.right);
      if (byOne) swap(node.right, `${node.right.getText()} + 1`);
    }
    if (node.kind === ts.SyntaxKind.TrueKeyword) swap(node, 'false');
    if (node.kind === ts.SyntaxKind.FalseKeyword) swap(node, 'true');
    if (ts.isPropertyAccessExpression(node) && ts.isCallExpression(node.parent) && node.parent.expression === node) {
      const other = { some: 'every', every: 'some' }[node.name.text];
      if (other) member(node, other);
    }
    if ((ts.isReturnStatement(node) && node.expression) || isCallStatement(node))
      add(node, '', (reached) => `{ if (!${reached}) ${node.getText()} }`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const isCallStatement = (node: ts.Node) =>
  ts.isExpressionStatement(node) &&
  ts.isCallExpression(node.expression) &&
  node.expression.expression.kind !== ts.SyntaxKind.SuperKeyword;

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 70 ? `${line.slice(0, 67)}…` : line || 'nothing';
}
