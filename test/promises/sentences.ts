/** A sentence with one of these words needs a test, or a reason why it is no promise. */
const PROMISING = /(?<![-\w])(never|always|nothing|only|stay|stays|refuse|refused|refuses|no-op|back)(?![-\w])/i;

/**
 * What a Markdown text promises: sentences of its paragraphs, list items and table cells, without markup. Headings and code blocks
 * are left out. A cell gets its row, and in a wide table its column, for context: `Connection file › Here: …`.
 */
export function markdownPromises(text: string): string[] {
  return unique(blocks(text).flatMap((block) => (block.startsWith('|') ? tablePromises(block) : promises(block))));
}

/** Paragraphs and list items on one line each, and tables with a line per row. */
function blocks(text: string): string[] {
  const found: string[] = [];
  let open: 'text' | 'table' | undefined;
  for (const line of text.replace(/^( *)```[\s\S]*?\n\1```$/gm, '').split('\n')) {
    const trimmed = line.trim();
    const kind = trimmed.startsWith('|') ? 'table' : 'text';
    const begins = kind !== open || /^(?:>|[-*]|\d+\.) /.test(trimmed);
    if (trimmed === '' || /^#{1,6} /.test(line)) open = undefined;
    else if (begins) found.push(trimmed.replace(/^(?:>|[-*]|\d+\.) +/, ''));
    else found[found.length - 1] += `${kind === 'table' ? '\n' : ' '}${trimmed}`;
    if (trimmed !== '' && !/^#{1,6} /.test(line)) open = kind;
  }
  return found;
}

function tablePromises(table: string): string[] {
  const [header = [], , ...rows] = table.split('\n').map(cells);
  return rows.flatMap(([label = '', ...others]) =>
    others.flatMap((cell, index) => {
      const column = header.length > 2 ? plain(header[index + 1] ?? '') : '';
      return promises(cell, [...(label ? [`${plain(label)} › `] : []), ...(column ? [`${column}: `] : [])].join(''));
    }),
  );
}

/** Cells of a row; a bar in code or after a backslash is not a border. */
function cells(row: string): string[] {
  const shielded = row.replace(/`[^`]*`/g, (code) => code.replaceAll('|', '\0')).replaceAll('\\|', '\0');
  const parts = shielded.split('|').slice(1, -1);
  return parts.map((cell) => cell.replaceAll('\0', '|').trim());
}

/** The promising sentences of a text, with their context in front. A period within code ends no sentence. */
function promises(text: string, where = ''): string[] {
  const shielded = text.replace(/`[^`]*`/g, (code) => code.replaceAll(' ', '\0'));
  const sentences = shielded.split(/(?<=[.!?][)"”*_]*)\s+(?=\[|[(*_`"“]*[A-Z0-9`-])/);
  const read = sentences.map((sentence) => plain(sentence.replaceAll('\0', ' ')));
  return read.filter((sentence) => PROMISING.test(sentence)).map((sentence) => where + sentence);
}

/** Text without its markup; in code every character is literal. */
function plain(text: string): string {
  return text
    .replace(/`[^`]*`/g, (code) => code.slice(1, -1).replaceAll('_', '\x01').replaceAll('*', '\x02'))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(?<!\w)\*\*(\S(?:.*?\S)?)\*\*/g, '$1')
    .replace(/(?<![\w*])([*_])(\S(?:[^*_]*\S)?)\1(?![\w*])/g, '$2')
    .replaceAll('\x01', '_')
    .replaceAll('\x02', '*')
    .replace(/\s+/g, ' ')
    .trim();
}

function unique(texts: string[]): string[] {
  return [...new Set(texts)];
}
