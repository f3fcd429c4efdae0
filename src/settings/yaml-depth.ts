import { CST } from 'yaml';
import { MOST_LEVELS } from '../json.ts';

/**
 * Watches the lexical parts of a document pass by and says when it nests deeper than any settings do. That must be known
 * before the document is composed, because composing recurses: a hundred kilobytes of `[` would exhaust the stack inside a
 * regular expression and end the process.
 */
export class DepthGuard {
  /** Offset of the next part in the text. */
  offset = 0;
  readonly #columns: number[] = [];
  #flow = 0;
  #lineStart = 0;
  #first = true;

  /** False when the part is too deep; `offset` is then its place. */
  accepts(lexeme: string): boolean {
    // Marks that the lexer inserts; they are not in the text.
    if (lexeme === CST.DOCUMENT || lexeme === CST.FLOW_END || lexeme === CST.SCALAR) return true;
    const type = CST.tokenType(lexeme);
    if (type === 'flow-map-start' || type === 'flow-seq-start') this.#flow += 1;
    else if (type === 'flow-map-end' || type === 'flow-seq-end') this.#flow = Math.max(0, this.#flow - 1);
    else if (this.#flow === 0 && opensBlock(type, this.#first)) this.#enter(this.offset - this.#lineStart);
    if (this.#flow + this.#columns.length > MOST_LEVELS) return false;
    this.offset += lexeme.length;
    if (lexeme.includes('\n')) {
      this.#lineStart = this.offset;
      this.#first = true;
    } else if (type !== 'space') {
      this.#first = false;
    }
    return true;
  }

  /** A block begins at a column and ends where something begins at that column or before it. */
  #enter(column: number): void {
    while ((this.#columns.at(-1) ?? -1) >= column) this.#columns.pop();
    this.#columns.push(column);
  }
}

function opensBlock(type: CST.TokenType | null, first: boolean): boolean {
  if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') return true;
  return first && type !== 'space' && type !== 'newline' && type !== 'comment';
}
