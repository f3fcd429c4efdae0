import type { Drift } from '../../src/plan/healing.ts';
import type { KeptStatus } from '../../src/reconcile/status-document.ts';
import { momentText } from '../../src/settings/maintenance-window.ts';
import { differenceText, entryLines } from './difference-text.ts';
import { count, paragraphs, pathText, plainText, type Style, valueText } from './text.ts';

interface Moment {
  /** Current time in milliseconds since the epoch. */
  now: number;
  /** IANA name of the local time zone. */
  zone?: string;
  paint: Style;
}

/** Formats one paragraph per kept profile. */
export function keptText(kept: readonly KeptStatus[], moment: Moment): string {
  if (kept.length === 0) return 'No profile is kept. Keep one with `rdctl apply -f FILE --keep`.\n';
  return paragraphs(kept.map((each) => profileText(each, moment)));
}

function profileText(kept: KeptStatus, moment: Moment): string {
  const { paint } = moment;
  const { name, files, state, window, message, contested } = kept;
  const word = state === 'in sync' || state === 'healing' ? paint.good(state) : paint.warn(state);
  const quiet = contested.filter(({ path }) => !kept.drift.some((drift) => pathText(drift) === path));
  return [
    `${plainText(name)}: ${word}`,
    `  from ${plainText(files.join(', '))}, applied ${kept.appliedAt} (generation ${kept.generation})`,
    `  heal: ${healText(kept)}`,
    ...(window === undefined ? [] : [`  restarts: ${plainText(window)}`]),
    ...(message === undefined ? [] : [`  ${paint.bad(plainText(message))}`]),
    ...kept.drift.flatMap((drift) => driftLines(drift, moment)),
    ...quiet.map((each) => `  ! ${plainText(each.message)}`),
  ].join('\n');
}

function healText({ watch }: KeptStatus): string {
  const fields = Object.entries(watch.fields).map(([path, level]) => `${plainText(path)}: ${level}`);
  return [watch.heal, ...fields].join(', ');
}

function driftLines(drift: Drift, { now, zone, paint }: Moment): string[] {
  const { before, after, what: fix, by, state, until, message, place, heal, pending } = drift;
  // Shown from the live value to the desired one, like a plan.
  const { brief, entries } = differenceText(before, after);
  const [values, differing] =
    fix !== undefined
      ? [`has changed: healing ${plainText(fix)}`, []]
      : entries.length > 0
        ? [`differs (to heal: ${brief})`, entryLines(entries)]
        : [`is ${valueText(before)}, should be ${after === undefined ? '(removed)' : valueText(after)}`, []];
  const where = place === undefined ? '' : ` (${plainText(place)})`;
  const who = by ? `, set by ${plainText(by.manager)} in generation ${by.generation}` : '';
  const level = pending ? 'from the last apply' : heal;
  const what =
    state === 'deferred' && until !== undefined ? `deferred until ${momentText(Date.parse(until), now, zone)}` : state;
  return [
    `  ~ ${pathText(drift)} ${values}${where}`,
    ...differing,
    `      ${paint.warn(what)} (${level}), since ${drift.since}${who}`,
    ...(message === undefined ? [] : [`      ${plainText(message)}`]),
  ];
}

/** Formats the kept profiles while no service runs. */
export function keptNamesText(kept: readonly { name: string; files: string[] }[]): string {
  if (kept.length === 0) return 'No profile is kept, and no service is running.\n';
  const lines = kept.map(({ name, files }) => `${plainText(name)}: not watched, from ${plainText(files.join(', '))}`);
  return `${lines.join('\n')}\n\nNo service is running, so nothing is compared with ${kept.length === 1 ? 'it' : 'them'}.\n`;
}

/** Formats the kept profiles for the status: `team: in sync`; undefined without any. */
export function keptSummary(kept: readonly KeptStatus[] | undefined): string | undefined {
  const parts = (kept ?? []).map(({ name, state, drift }) => {
    const fields = drift.length === 0 ? '' : ` (${count(drift.length, 'field')}; see \`rdctl kept\`)`;
    return `${plainText(name)}: ${state}${fields}`;
  });
  return parts.length === 0 ? undefined : parts.join('; ');
}
