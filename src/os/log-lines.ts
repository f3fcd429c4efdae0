/** Characters of a line without an end, after which it is cut. */
const LONGEST = 1024 * 1024;
const NEWLINE = 0x0a;

/** Makes lines of bytes. */
export interface LineSplitter {
  /** The lines that these bytes complete, without their ends. */
  add(chunk: Uint8Array): string[];
  /** The line that has not ended, if there is one; it is forgotten. */
  rest(): string[];
}

/** Splits before decoding, so that a character may begin in one chunk and end in the next. */
export function lineSplitter(longest = LONGEST): LineSplitter {
  let parts: Buffer[] = [];
  let length = 0;

  function rest(): string[] {
    if (length === 0) return [];
    const line = Buffer.concat(parts, length).toString('utf8').replace(/\r$/, '');
    parts = [];
    length = 0;
    return [line];
  }

  return {
    add(chunk) {
      const lines: string[] = [];
      let from = 0;
      while (from < chunk.length) {
        const at = chunk.indexOf(NEWLINE, from);
        const end = Math.min(at < 0 ? chunk.length : at, from + longest - length);
        parts.push(Buffer.from(chunk.subarray(from, end)));
        length += end - from;
        if (end === at) lines.push(...(length === 0 ? [''] : rest()));
        else if (length === longest) lines.push(...rest());
        from = end === at ? end + 1 : end;
      }
      return lines;
    },
    rest,
  };
}

/** Which lines of a log are wanted; all of them without either. */
export interface LineSelection {
  /** At most so many, the last ones. */
  last?: number;
  /** Lines since then; one that has no time belongs to the one before it. */
  since?: { time: number; timeOf(line: string): number | undefined };
}

/** Judges successive lines. */
export function sinceFilter(since: LineSelection['since']): (line: string) => boolean {
  let wanted = since === undefined;
  return (line) => {
    const time = since?.timeOf(line);
    if (since !== undefined && time !== undefined) wanted = time >= since.time;
    return wanted;
  };
}

/** The selected lines, and whether there were earlier ones that are not. */
export async function selectLines(
  lines: AsyncIterable<string>,
  { last = Number.POSITIVE_INFINITY, since }: LineSelection,
): Promise<{ lines: string[]; complete: boolean }> {
  const isWanted = sinceFilter(since);
  let kept: string[] = [];
  let complete = false;
  for await (const line of lines) {
    if (!isWanted(line)) {
      complete = true;
      kept = [];
    } else kept.push(line);
    // In bulk, because removing the first of many is slow.
    if (kept.length > 2 * last + 1_000) kept = kept.slice(-last);
  }
  if (last === 0) return { lines: [], complete: true };
  return kept.length >= last ? { lines: kept.slice(-last), complete: true } : { lines: kept, complete };
}
