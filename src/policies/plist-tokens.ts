/**
 * A piece of a property list in XML, with the offset of its first sign. Comments and character data are one each, so that tags in
 * them do not count.
 */
export type PlistToken = { at: number } & Piece;
type Piece =
  | { kind: 'tag'; tag: string; end: boolean; empty: boolean }
  /** Between tags, with references as they are written. */
  | { kind: 'text'; text: string }
  /** Between the marks of character data, where no reference counts. */
  | { kind: 'characters'; text: string }
  | { kind: 'comment' }
  /** A processing instruction or the type of the document. */
  | { kind: 'declaration' }
  /** What no property list has; the reason is a clause. */
  | { kind: 'unknown'; reason: string };

const TAG = /<(\/?)([A-Za-z]+)(?:\s[^<>]*?)?(\/?)>/y;
const DOCUMENT_TYPE = /<!DOCTYPE[^<>[\]]*>/y;

interface Enclosed {
  begin: string;
  end: string;
  token(text: string): Piece;
  unfinished: string;
}

const ENCLOSED: readonly Enclosed[] = [
  { begin: '<!--', end: '-->', token: () => ({ kind: 'comment' }), unfinished: 'a comment has no end' },
  {
    begin: '<![CDATA[',
    end: ']]>',
    token: (text) => ({ kind: 'characters', text }),
    unfinished: 'character data has no end',
  },
  { begin: '<?', end: '?>', token: () => ({ kind: 'declaration' }), unfinished: 'an instruction has no end' },
];

/**
 * The pieces of a text in their order, up to the first unknown one. Every character is looked at a fixed number of times: what
 * has no end is the last piece.
 */
export function* plistTokens(text: string): Generator<PlistToken, void> {
  let at = 0;
  while (at < text.length) {
    const [token, next] = tokenAt(text, at);
    yield { at, ...token };
    if (token.kind === 'unknown') return;
    at = next;
  }
}

/** The piece that begins there, and where the next one does. */
function tokenAt(text: string, at: number): [Piece, number] {
  if (text[at] !== '<') {
    const end = endOf(text, '<', at);
    return [{ kind: 'text', text: text.slice(at, end) }, end];
  }
  for (const { begin, end, token, unfinished } of ENCLOSED) {
    if (!text.startsWith(begin, at)) continue;
    const from = at + begin.length;
    const to = text.indexOf(end, from);
    if (to === -1) return [{ kind: 'unknown', reason: unfinished }, text.length];
    return [token(text.slice(from, to)), to + end.length];
  }
  DOCUMENT_TYPE.lastIndex = at;
  if (DOCUMENT_TYPE.test(text)) return [{ kind: 'declaration' }, DOCUMENT_TYPE.lastIndex];
  TAG.lastIndex = at;
  const [, slash, tag, closed] = TAG.exec(text) ?? [];
  if (tag !== undefined) return [{ kind: 'tag', tag, end: slash === '/', empty: closed === '/' }, TAG.lastIndex];
  const begun = text.startsWith('<!', at) ? '"<!" begins nothing that a property list has' : '"<" begins no tag';
  return [{ kind: 'unknown', reason: begun }, text.length];
}

function endOf(text: string, sign: string, from: number): number {
  const found = text.indexOf(sign, from);
  return found === -1 ? text.length : found;
}
