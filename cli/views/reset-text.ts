import type { ResetSummary } from '../../src/state/factory-reset.ts';

/** Formats the result of a factory reset, or its effects as a dry run. */
export function resetText({ removed, kept, failed }: ResetSummary, dryRun = false): string {
  const section = (title: string, lines: string[]): string =>
    lines.length === 0 ? '' : `${title}\n${lines.map((line) => `  ${line}\n`).join('')}`;
  const text = [
    section(dryRun ? 'Would be removed:' : 'Removed:', removed),
    section(
      dryRun ? 'Would be kept:' : 'Kept:',
      kept.map(({ path, why }) => `${path} (${why})`),
    ),
    section(
      dryRun ? 'Could not be removed:' : 'Not removed:',
      failed.map(({ path, reason }) => `${path}: ${reason}`),
    ),
  ].join('');
  return text === '' ? `There ${dryRun ? 'is' : 'was'} nothing to remove.\n` : text;
}
