import { type StructuredPatchHunk, structuredPatch } from 'diff';

/** Edits that a diff may have: finding more would take seconds, so such texts are shown as a whole. */
const MAX_EDITS = 2000;

/** Returns a unified diff of two texts, with the names of both in its first lines; empty if they are equal. */
export function unifiedDiff(before: string, after: string, names: { before: string; after: string }): string {
  if (before === after) return '';
  const patch = structuredPatch('', '', before, after, undefined, undefined, { context: 3, maxEditLength: MAX_EDITS });
  const hunks = patch?.hunks ?? [wholeTexts(before, after)];
  // The library would quote names with spaces.
  return `--- ${names.before}\n+++ ${names.after}\n${hunks.map(hunkText).join('')}`;
}

function wholeTexts(before: string, after: string): StructuredPatchHunk {
  const signed = (sign: string, text: string) =>
    (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).flatMap((line) =>
      line.endsWith('\n') ? [`${sign}${line.slice(0, -1)}`] : [`${sign}${line}`, '\\ No newline at end of file'],
    );
  const [old, now] = [signed('-', before), signed('+', after)];
  const count = (lines: readonly string[]) => lines.filter((line) => !line.startsWith('\\')).length;
  return { oldStart: 1, oldLines: count(old), newStart: 1, newLines: count(now), lines: [...old, ...now] };
}

/** Formats a hunk. By convention, a side without lines starts at the line above. */
function hunkText({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): string {
  const span = (start: number, size: number) => `${size === 0 ? start - 1 : start},${size}`;
  return `@@ -${span(oldStart, oldLines)} +${span(newStart, newLines)} @@\n${lines.map((line) => `${line}\n`).join('')}`;
}
