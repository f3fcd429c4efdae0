import { RdError } from '../../errors.ts';

/** The marker lines around our content. */
export interface BlockMarks {
  start: string;
  end: string;
}

/** Lines inside a block that record how to undo it, so that the file suffices after our own records are lost. */
const CREATED = '# This file holds nothing else; it was made for these lines and goes with them.';
const LINE_ENDED = '# The line above had no end; it got one for these lines.';
const NOTES = [CREATED, LINE_ENDED];

interface Block {
  /** Offsets of the whole block: from the start mark to after the line of the end mark. */
  from: number;
  to: number;
  /** The lines between the marks, without line endings. */
  lines: string[];
}

/**
 * Puts the block with these lines into the text of a shell file: replaces an existing one, otherwise appends. A text that has it is returned
 * unchanged. `undefined` stands for a missing file. Texts are latin1, so that every other byte is preserved.
 * @param isKept whether the lines of an existing block are equivalent and stay as a person or an earlier release wrote them.
 * @throws RdError `ERR_IO` when our marks are in an unexpected order.
 */
export function withBlock(
  text: string | undefined,
  lines: readonly string[],
  marks: BlockMarks,
  isKept: (lines: readonly string[]) => boolean = () => false,
): string {
  if (text === undefined) return blockText([CREATED, ...lines], marks);
  const [first, ...others] = blocksIn(text, marks);
  if (first) {
    // Merged dotfiles may duplicate the block: the first one stays.
    const rest = cut(text, others);
    const block = blockText([...first.lines.filter(isNote), ...lines], marks);
    if (blockText(first.lines, marks) === block || isKept(first.lines)) return rest;
    return rest.slice(0, first.from) + block + rest.slice(first.to);
  }
  if (text === '' || text.endsWith('\n')) return text + blockText(lines, marks);
  return `${text}\n${blockText([LINE_ENDED, ...lines], marks)}`;
}

/**
 * Removes every block. Restores the text that `withBlock` was given, byte for byte.
 * @returns undefined to delete the file, which was created for the block and is otherwise empty.
 * @throws RdError `ERR_IO` when our marks are in an unexpected order.
 */
export function withoutBlock(text: string, marks: BlockMarks): string | undefined {
  const blocks = blocksIn(text, marks);
  const rest = cut(text, blocks);
  return rest === '' && blocks.some(({ lines }) => lines.includes(CREATED)) ? undefined : rest;
}

function isNote(line: string): boolean {
  return NOTES.includes(line);
}

function cut(text: string, blocks: readonly Block[]): string {
  let rest = text;
  for (const { from, to, lines } of [...blocks].reverse()) {
    const after = rest.slice(to);
    const before = rest.slice(0, from);
    // If user lines follow, the line ending added above is needed.
    const shortened = lines.includes(LINE_ENDED) && after === '' ? before.replace(/\n$/, '') : before;
    rest = shortened + after;
  }
  return rest;
}

function blockText(lines: readonly string[], { start, end }: BlockMarks): string {
  return [start, ...lines, end].map((line) => `${line}\n`).join('');
}

function blocksIn(text: string, marks: BlockMarks): Block[] {
  const blocks: Block[] = [];
  let open: { from: number; lines: string[] } | undefined;
  for (const { from, to, line } of linesOf(text)) {
    if (line === marks.start) {
      if (open) throw misplacedMarks(marks, 'starts twice');
      open = { from, lines: [] };
    } else if (line === marks.end) {
      if (!open) throw misplacedMarks(marks, 'ends without a start');
      blocks.push({ ...open, to });
      open = undefined;
    } else {
      open?.lines.push(line);
    }
  }
  if (open) throw misplacedMarks(marks, 'has no end');
  return blocks;
}

/** Yields the lines, without trailing blanks or Windows line endings that an editor may have added. */
function* linesOf(text: string): Generator<{ from: number; to: number; line: string }> {
  for (let from = 0; from < text.length; ) {
    const at = text.indexOf('\n', from);
    const to = at < 0 ? text.length : at + 1;
    yield { from, to, line: text.slice(from, to).trimEnd() };
    from = to;
  }
}

function misplacedMarks({ start, end }: BlockMarks, what: string): RdError {
  return new RdError('ERR_IO', `the managed block in it ${what}, so its position is unclear`, {
    advice: `Remove the lines from "${start}" to "${end}" by hand.`,
  });
}
