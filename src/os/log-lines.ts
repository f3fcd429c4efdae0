/** Characters after which a line without an end is cut. */
const LONGEST = 1024 * 1024;
const NEWLINE = 0x0a;

/** Splits bytes into lines. */
export interface LineSplitter {
  /** Returns the lines that these bytes complete, without their ends. */
  add(chunk: Uint8Array): string[];
  /** Returns the unfinished line, if there is one, and forgets it. */
  rest(): string[];
}

/** Creates a splitter. It splits before decoding, so that a character may begin in one chunk and end in the next. */
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

/** Selects lines of a log; all of them if empty. */
export interface LineSelection {
  /** Maximum number of lines, counted from the end. */
  last?: number;
  /** Lines since then; one without a time belongs to the line before it. */
  since?: { time: number; timeOf(line: string): number | undefined };
}

/** Returns a predicate that judges successive lines. */
export function sinceFilter(since: LineSelection['since']): (line: string) => boolean {
  let wanted = since === undefined;
  return (line) => {
    const time = since?.timeOf(line);
    if (since !== undefined && time !== undefined) wanted = time >= since.time;
    return wanted;
  };
}

/** Returns the selected lines, and whether earlier ones were left out. */
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
    // Removed in bulk, because removing the first of many is slow.
    if (kept.length > 2 * last + 1_000) kept = kept.slice(-last);
  }
  if (last === 0) return { lines: [], complete: true };
  return kept.length >= last ? { lines: kept.slice(-last), complete: true } : { lines: kept, complete };
}
