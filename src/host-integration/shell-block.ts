import { RdError } from '../errors.ts';

/** The lines that stand around what is ours. */
export interface BlockMarks {
  start: string;
  end: string;
}

/** Lines inside of a block that tell how to undo it: the file alone says so, also after our own records are lost. */
const CREATED = '# This file holds nothing else; it was made for these lines and goes with them.';
const LINE_ENDED = '# The line above had no end; it got one for these lines.';
const directoriesNote = (count: number): string => `# Directories made for this file: ${count}.`;
const DIRECTORIES = /^# Directories made for this file: (\d{1,3})\.$/;

interface Block {
  /** Offsets of the whole: from the first character of the start mark to behind the end of the line of the end mark. */
  from: number;
  to: number;
  /** The lines between the marks, without their ends. */
  lines: string[];
}

/** What is left when the blocks are out. */
export interface WithoutBlock {
  /** Absent: the file goes too, because it was made for the block and nobody has added anything. */
  text?: string;
  /** With the file go so many directories above it, where they are empty. */
  directories: number;
}

/**
 * Puts the block with these lines into the text of a shell file: where one is, in its place; otherwise at the end. A text that
 * has it comes back as it is. `undefined` stands for a file that does not exist, and that needs so many new `directories`.
 * Texts are read byte by byte (latin1), so that every other byte of a file stays what it was.
 * @throws RdError `ERR_IO` when marks of ours stand there in an order that we did not write.
 */
export function withBlock(
  text: string | undefined,
  lines: readonly string[],
  marks: BlockMarks,
  directories = 0,
): string {
  if (text === undefined) {
    const notes = directories === 0 ? [CREATED] : [CREATED, directoriesNote(directories)];
    return blockText([...notes, ...lines], marks);
  }
  const [first, ...others] = blocksIn(text, marks);
  if (first) {
    // Copies come from merged dotfiles: the first stays.
    const rest = others.length === 0 ? text : cut(text, others);
    const kept = first.lines.filter(isNote);
    if (first.lines.join('\n') === [...kept, ...lines].join('\n')) return rest;
    return rest.slice(0, first.from) + blockText([...kept, ...lines], marks) + rest.slice(first.to);
  }
  if (text === '' || text.endsWith('\n')) return text + blockText(lines, marks);
  return `${text}\n${blockText([LINE_ENDED, ...lines], marks)}`;
}

/**
 * Takes every block out. What `withBlock` was given comes back byte for byte.
 * @throws as `withBlock`.
 */
export function withoutBlock(text: string, marks: BlockMarks): WithoutBlock {
  const blocks = blocksIn(text, marks);
  const rest = cut(text, blocks);
  const notes = blocks.flatMap(({ lines }) => lines.filter(isNote));
  if (rest !== '' || !notes.includes(CREATED)) return { text: rest, directories: 0 };
  const [, count = 0] = notes.map((note) => DIRECTORIES.exec(note)).find((match) => match !== null) ?? [];
  return { directories: Number(count) };
}

function isNote(line: string): boolean {
  return line === CREATED || line === LINE_ENDED || DIRECTORIES.test(line);
}

function cut(text: string, blocks: readonly Block[]): string {
  let rest = text;
  for (const { from, to, lines } of [...blocks].reverse()) {
    const after = rest.slice(to);
    const before = rest.slice(0, from);
    // With lines of the user behind it, the end that the line above got is needed.
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
      if (open) throw disorder(marks, 'starts twice');
      open = { from, lines: [] };
    } else if (line === marks.end) {
      if (!open) throw disorder(marks, 'ends without a start');
      blocks.push({ ...open, to });
      open = undefined;
    } else {
      open?.lines.push(line);
    }
  }
  if (open) throw disorder(marks, 'has no end');
  return blocks;
}

/** An editor may have put blanks or the line ends of Windows behind the lines. */
function* linesOf(text: string): Generator<{ from: number; to: number; line: string }> {
  for (let from = 0; from < text.length; ) {
    const at = text.indexOf('\n', from);
    const to = at < 0 ? text.length : at + 1;
    yield { from, to, line: text.slice(from, to).trimEnd() };
    from = to;
  }
}

function disorder({ start, end }: BlockMarks, what: string): RdError {
  return new RdError('ERR_IO', `the managed block in it ${what}, so that nobody can tell where it is`, {
    advice: `Remove the lines from "${start}" to "${end}" by hand.`,
  });
}
