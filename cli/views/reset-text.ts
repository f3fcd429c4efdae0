import type { ResetSummary } from '../../src/state/factory-reset.ts';

/** The result of a factory reset, as text. */
export function resetText({ removed, kept, failed }: ResetSummary): string {
  const section = (title: string, lines: string[]): string =>
    lines.length === 0 ? '' : `${title}\n${lines.map((line) => `  ${line}\n`).join('')}`;
  const text = [
    section('Removed:', removed),
    section(
      'Kept:',
      kept.map(({ path, why }) => `${path} (${why})`),
    ),
    section(
      'Not removed:',
      failed.map(({ path, reason }) => `${path}: ${reason}`),
    ),
  ].join('');
  return text === '' ? 'There was nothing to remove.\n' : text;
}
