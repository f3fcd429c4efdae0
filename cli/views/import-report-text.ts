import { type Fidelity, outcomeCounts } from '../../profiles/document/fidelity.ts';
import type { ImportedPart } from '../../profiles/formats/format.ts';
import { partOfPlace } from '../../profiles/formats/registry-parts.ts';
import { jsonText, plainText } from './text.ts';

/** The result of an import. */
export interface ImportReport {
  parts: readonly (ImportedPart & { format: string })[];
  fidelity: readonly Fidelity[];
  warnings: readonly string[];
}

/** Maximum lines of one kind in text; JSON has all of them. */
const MAX_SHOWN = 50;

/** Formats the report as text: the counts, then the differences from the source. */
export function reportText({ fidelity }: Pick<ImportReport, 'fidelity'>): string {
  const { kept, changed, lost } = outcomeCounts(fidelity);
  const lines = [
    `${kept} kept, ${changed} changed, ${lost} lost`,
    ...firstLines(fidelity.flatMap((entry) => (entry.outcome === 'changed' ? [`  ~ ${changedText(entry)}`] : []))),
    ...firstLines(fidelity.flatMap((entry) => (entry.outcome === 'lost' ? [`  - ${lostText(entry)}`] : []))),
  ];
  return lines.map((line) => `${plainText(line)}\n`).join('');
}

/** Formats the `--report` file: fields are added, never changed. It contains no values. */
export function reportJson({ parts, fidelity, warnings }: ImportReport): string {
  const of = <T extends Fidelity['outcome']>(outcome: T) =>
    fidelity.filter((entry): entry is Extract<Fidelity, { outcome: T }> => entry.outcome === outcome);
  const report = {
    kind: 'ImportReport',
    formatVersion: 1,
    sources: parts.map(({ source, format, part, settings }) => ({
      source,
      format,
      part: part ?? null,
      version: typeof settings.version === 'number' ? settings.version : null,
    })),
    counts: outcomeCounts(fidelity),
    kept: of('kept').map(({ part, path }) => ({ part, path })),
    changed: of('changed').map(({ part, path, from, reason }) => ({ part, path, from: from ?? path, reason })),
    // The place of a registry value contains the part.
    lost: of('lost').map(({ part, place, reason }) => ({ part: part ?? partOfPlace(place) ?? null, place, reason })),
    warnings,
  };
  return jsonText(report);
}

function firstLines(lines: readonly string[]): string[] {
  const more = lines.length - MAX_SHOWN;
  return more <= 0 ? [...lines] : [...lines.slice(0, MAX_SHOWN), `  … and ${more} more; use --report FILE to see all`];
}

function changedText({ part, path, from, reason }: Extract<Fidelity, { outcome: 'changed' }>): string {
  return `${path} (${part}${from === undefined ? '' : `, at ${from} before`}): ${reason}`;
}

function lostText({ part, place, reason }: Extract<Fidelity, { outcome: 'lost' }>): string {
  return `${place}${part === undefined ? '' : ` (${part})`}: ${reason}`;
}
