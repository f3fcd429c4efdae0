import type { Finding, Findings } from '../../src/client/diagnostics.ts';
import type { Style } from './style.ts';
import { count, plainText } from './value.ts';

/** Failed checks as text; with `all`, every check. Muted ones are not counted. */
export function diagnosticsText({ last_update, checks }: Findings, all: boolean, paint: Style): string {
  if (checks.length === 0) return 'Nothing has been looked at yet: `rdctl diagnostics --run` does.\n';
  const shown = checks.filter(({ passed }) => all || !passed);
  const counted = checks.filter(({ mute }) => !mute);
  const failures = counted.filter(({ passed }) => !passed);
  const verdict = failures.length === 0 ? 'none' : String(failures.length);
  const last = `${verdict} of ${count(counted.length, 'check')} failed; looked at ${plainText(last_update)}`;
  return [...shown.map((check) => findingText(check, paint)), last].join('\n\n').concat('\n');
}

function findingText({ id, category, description, passed, mute, fixes }: Finding, paint: Style): string {
  const word = passed ? paint.good('passed') : paint.bad('failed');
  const muted = mute ? ` ${paint.dim('(muted)')}` : '';
  const lines = [plainText(description), ...fixes.map((fix) => `- ${plainText(fix.description)}`)];
  return [
    `${word}  ${paint.bold(plainText(id))}  ${plainText(category)}${muted}`,
    ...lines.map((line) => `        ${line}`),
  ].join('\n');
}
