import { CST } from 'yaml';

const DEEPEST = 100;

/**
 * Offset at which a document nests deeper than any settings do, if it does. Asked before the document is composed, because
 * that recurses: a hundred kilobytes of `[` would exhaust the stack inside a regular expression and end the process.
 */
export function tooDeep(lexemes: readonly string[]): number | undefined {
  const columns: number[] = [];
  let flow = 0;
  let offset = 0;
  let lineStart = 0;
  let first = true;
  for (const lexeme of lexemes) {
    const type = CST.tokenType(lexeme);
    // Marks that the lexer inserts; they are not in the text.
    if (lexeme === CST.DOCUMENT || lexeme === CST.FLOW_END || lexeme === CST.SCALAR) continue;
    if (type === 'flow-map-start' || type === 'flow-seq-start') flow += 1;
    else if (type === 'flow-map-end' || type === 'flow-seq-end') flow = Math.max(0, flow - 1);
    else if (flow === 0 && opensBlock(type, first)) enter(columns, offset - lineStart);
    if (flow + columns.length > DEEPEST) return offset;
    offset += lexeme.length;
    if (type === 'newline' || lexeme.includes('\n')) {
      lineStart = offset;
      first = true;
    } else if (type !== 'space') {
      first = false;
    }
  }
  return undefined;
}

function opensBlock(type: CST.TokenType | null, first: boolean): boolean {
  if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') return true;
  return first && type !== 'space' && type !== 'newline' && type !== 'comment';
}

/** A block begins at a column and ends where something begins at that column or before it. */
function enter(columns: number[], column: number): void {
  while ((columns.at(-1) ?? -1) >= column) columns.pop();
  columns.push(column);
}
