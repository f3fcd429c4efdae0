/** Lines around a change that are shown with it. */
const CONTEXT = 3;
/** Edits that are searched for the shortest way; beyond that the differing middle is shown as a whole. */
const MOST_EDITS = 2000;

interface Line {
  sign: ' ' | '-' | '+';
  text: string;
}

/** A unified diff of two texts, with the names of both in its first lines; empty where they are equal. */
export function unifiedDiff(before: string, after: string, names: { before: string; after: string }): string {
  if (before === after) return '';
  const lines = compare(linesOf(before), linesOf(after));
  const hunks = hunksOf(lines).map(([from, to]) => hunkText(lines, from, to));
  return `--- ${names.before}\n+++ ${names.after}\n${hunks.join('')}`;
}

/** The lines with their ends: the last may lack it, and that is a difference. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function compare(before: readonly string[], after: readonly string[]): Line[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const same = (text: string): Line => ({ sign: ' ', text });
  return [
    ...before.slice(0, head).map(same),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ];
}

/** The shortest way from one list of lines to the other: furthest reaching paths by number of edits. */
function middle(before: readonly string[], after: readonly string[]): Line[] {
  const whole = [...before.map((text) => line('-', text)), ...after.map((text) => line('+', text))];
  if (before.length === 0 || after.length === 0) return whole;
  const reached = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  const most = Math.min(before.length + after.length, MOST_EDITS);
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(reached));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = goesDown(reached, diagonal, edits);
      let x = down ? at(reached, diagonal + 1) : at(reached, diagonal - 1) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      reached.set(diagonal, x);
      if (x >= before.length && x - diagonal >= after.length) return walkBack(before, after, trace);
    }
  }
  return whole;
}

function walkBack(before: readonly string[], after: readonly string[], trace: readonly Map<number, number>[]): Line[] {
  const lines: Line[] = [];
  let x = before.length;
  let y = after.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const reached = trace[edits] ?? new Map<number, number>();
    const diagonal = x - y;
    const down = goesDown(reached, diagonal, edits);
    const fromDiagonal = down ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : at(reached, fromDiagonal);
    const fromY = edits === 0 ? 0 : fromX - fromDiagonal;
    while (x > fromX && y > fromY && (edits === 0 || x - fromX > (down ? 0 : 1) || y - fromY > (down ? 1 : 0))) {
      x -= 1;
      y -= 1;
      lines.push(line(' ', before[x] ?? ''));
    }
    if (edits === 0) break;
    if (down) {
      y -= 1;
      lines.push(line('+', after[y] ?? ''));
    } else {
      x -= 1;
      lines.push(line('-', before[x] ?? ''));
    }
  }
  return lines.reverse();
}

function goesDown(reached: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  return diagonal === -edits || (diagonal !== edits && at(reached, diagonal - 1) < at(reached, diagonal + 1));
}

function at(reached: ReadonlyMap<number, number>, diagonal: number): number {
  return reached.get(diagonal) ?? -1;
}

function line(sign: Line['sign'], text: string): Line {
  return { sign, text };
}

/** Ranges of lines with the changes and what is around them; those that touch are one. */
function hunksOf(lines: readonly Line[]): [number, number][] {
  const hunks: [number, number][] = [];
  for (const [index, { sign }] of lines.entries()) {
    if (sign === ' ') continue;
    const from = Math.max(0, index - CONTEXT);
    const to = Math.min(lines.length, index + CONTEXT + 1);
    const last = hunks.at(-1);
    if (last && from <= last[1]) last[1] = to;
    else hunks.push([from, to]);
  }
  return hunks;
}

function hunkText(lines: readonly Line[], from: number, to: number): string {
  const shown = lines.slice(from, to);
  const body = shown.map(({ sign, text }) =>
    text.endsWith('\n') ? `${sign}${text}` : `${sign}${text}\n\\ No newline at end of file\n`,
  );
  return `@@ -${span(lines, from, to, '+')} +${span(lines, from, to, '-')} @@\n${body.join('')}`;
}

/** First line and number of lines of one side, which has no lines with the sign of the other. */
function span(lines: readonly Line[], from: number, to: number, other: '+' | '-'): string {
  const count = (part: readonly Line[]) => part.filter(({ sign }) => sign !== other).length;
  const above = count(lines.slice(0, from));
  const size = count(lines.slice(from, to));
  return `${size === 0 ? above : above + 1},${size}`;
}
