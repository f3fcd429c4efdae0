import { isDeepStrictEqual } from 'node:util';
import type { Locate } from '../../profiles/document/load.ts';
import { sizeText } from '../../src/os/size.ts';
import type { Action, Change, Plan, Severity, Target } from '../../src/plan/change.ts';
import type { UserFileChange } from '../../src/plan/user-files.ts';
import { momentText } from '../../src/settings/maintenance-window.ts';
import { type DifferenceText, differenceText, entryLines } from './difference-text.ts';
import { foreseenText } from './foreseen-text.ts';
import { timeText } from './history-text.ts';
import { durationText, paragraphs, pathText, plainText, type Style, valueText } from './text.ts';

const SIGNS: Record<Action, string> = { create: '+', update: '~', replace: '±', delete: '-', 'no-op': ' ' };

const COSTS: Record<Severity, string> = {
  none: 'stored',
  live: 'live',
  restart: 'restart',
  reset: 'RESET',
};

/** Formats the plan as text: target, changes, blocked changes, blast radius, and a summary line. */
export function planText(plan: Plan, paint: Style, locate?: Locate): string {
  const possible = plan.changes.filter((change) => !change.blocked);
  const blocked = plan.changes.filter((change) => change.blocked);
  return paragraphs([
    targetText(plan.target, plan.basis, paint),
    possible.flatMap((change) => changeLines(change, paint)).join('\n'),
    listText(
      'Cannot be changed:',
      blocked.flatMap((change) => blockedLines(change, paint, locate)),
    ),
    listText(
      'Blast radius:',
      plan.blastRadius.map(
        (item) => `  * ${plainText(item.what)}${item.lost ? paint.bad(` (${lossText(item.consent, plan)})`) : ''}`,
      ),
    ),
    plan.snapshot ? snapshotText(plan.snapshot) : '',
    userFilesText('Your files:', plan.userFiles ?? [], paint),
    deferredText(plan),
    keptText(plan),
    listText(
      'Restart already pending:',
      plan.pendingRestart.map((reason) => `  * ${plainText(reason)}`),
    ),
    warningsText(plan, paint),
    [
      paint.bold(plan.changes.length > 0 ? plan.summary.text : sentence(plan.summary.text)),
      ...(plan.prediction ? [predictionText(plan.prediction)] : []),
    ].join('\n'),
  ]);
}

/** Describes the reactions of kept profiles to the changes, without those that are blocked for that reason. */
export function keptText({ drift = [], changes }: Plan): string {
  const blocked = new Set(changes.filter(({ blocked }) => blocked?.by === 'kept').map(pathText));
  const lines = drift
    .filter((each) => !blocked.has(pathText(each)))
    .map((each) => `  * ${foreseenText(each, plainText(each.profile))}`);
  return listText('Kept profiles:', lines);
}

/** Lists the user's files that change, below a title. */
export function userFilesText(title: string, files: readonly UserFileChange[], paint: Style): string {
  return listText(
    title,
    files.map(({ action, file, what }) => `  ${signOf(action, paint)} ${plainText(file)}: ${plainText(what)}`),
  );
}

function deferredText({ deferred }: Plan): string {
  if (!deferred) return '';
  const when = momentText(Date.parse(deferred.until), Date.now());
  const lines = deferred.changes.map((name) => `  * ${plainText(name)}`);
  return listText(`Restart deferred until ${when}:`, lines);
}

/** Formats a predicted duration: `About 6 s, as the same steps took here twice since 2026-11-03.` */
function predictionText({ ms, times, since }: NonNullable<Plan['prediction']>): string {
  const often = times === 1 ? 'once' : times === 2 ? 'twice' : `${times} times`;
  const day = timeText(since).slice(0, 'YYYY-MM-DD'.length);
  const took = times === 1 ? `once, on ${day}` : `${often} since ${day}`;
  return `About ${roughly(ms)}, as the same steps took here ${took}.`;
}

/** Formats a duration with no more digits than its variation permits: `140 ms`, `6 s`, `2 min 30 s`. */
function roughly(ms: number): string {
  if (ms < 1000) return durationText(ms < 100 ? ms : Math.round(ms / 10) * 10);
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  return durationText(Math.round(ms / 10_000) * 10_000).replace(/ 0 s$/, '');
}

function lossText(consent: string | undefined, { snapshot }: Plan): string {
  const name = consent === undefined ? '' : `${plainText(consent)}: `;
  return `${name}${snapshot ? 'comes back only from the snapshot' : 'cannot be recovered'}`;
}

function snapshotText({ bytes }: NonNullable<Plan['snapshot']>): string {
  const size = bytes === undefined ? '' : bytes === 0 ? ', sharing its blocks' : `, about ${sizeText(bytes)}`;
  return `A snapshot is made first${size}. Without one: --no-snapshot`;
}

/** Turns a clause into a sentence. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Formats one line per warning. */
export function warningsText({ warnings }: Plan, paint: Style): string {
  return warnings.map((warning) => `${paint.warn('warning:')} ${plainText(warning)}`).join('\n');
}

/** Formats `Target: rdctl at /home/x/.local/share/rdctl`, and the driver, marking a simulation. Another application has no driver. */
export function targetText(target: Target, basis: Plan['basis'], paint: Style): string {
  if (target.settingsVersion !== undefined) {
    const who = `${target.product} (version unknown, settings version ${target.settingsVersion})`;
    const costs = basis === 'estimated' ? ['Basis:  estimated, not reported by the application'] : [];
    return [`Target: ${who} at ${target.home ?? 'an unknown location'}`, ...costs].join('\n');
  }
  const lines = [`Target: ${target.product}${target.home === undefined ? '' : ` at ${target.home}`}`];
  if (target.simulated) lines.push(`Driver: ${paint.warn(`${target.driver} (SIMULATED: no real machine or engine)`)}`);
  else lines.push(`Driver: ${target.driver}`);
  if (basis === 'estimated') lines.push('Basis:  estimated, no running service');
  return lines.join('\n');
}

function changeLines(change: Change, paint: Style): string[] {
  const { brief, entries } = transition(change);
  return [
    `  ${signOf(change.action, paint)} ${pathText(change)}: ${brief}`,
    ...entryLines(entries),
    `      ${costText(change.severity, paint)}: ${plainText(change.reason)}`,
  ];
}

function signOf(action: Action, paint: Style): string {
  const sign = SIGNS[action];
  if (action === 'create') return paint.good(sign);
  if (action === 'delete') return paint.bad(sign);
  return action === 'no-op' ? sign : paint.warn(sign);
}

/** Formats the transition of a change. A created entry has one side only. */
export function transition({ action, before, after, blocked }: Change): DifferenceText {
  // The desired value equals the live one, but is not supported.
  const isOneSided = action === 'create' || (blocked && isDeepStrictEqual(before, after));
  if (isOneSided) return { brief: valueText(after), entries: [] };
  return differenceText(before, action === 'delete' ? undefined : after);
}

function costText(severity: Severity, paint: Style): string {
  if (severity === 'reset') return paint.bad(COSTS.reset);
  return severity === 'restart' ? paint.warn(COSTS.restart) : COSTS[severity];
}

function blockedLines(change: Change, paint: Style, locate: Locate | undefined): string[] {
  const { brief, entries } = transition(change);
  return [
    `  ! ${pathText(change)}: ${brief}${plainText(placeSuffix(change, locate))}`,
    ...entryLines(entries),
    `      ${paint.bad(change.blocked?.by ?? '')}: ${plainText(change.blocked?.message ?? '')}`,
  ];
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [title, ...lines].join('\n');
}

/** Returns ` (team.yaml:7:5)` for a change that a document requests; otherwise an empty text. */
function placeSuffix({ path, key }: { path: string; key?: string }, locate: Locate | undefined): string {
  const place = locate?.([...path.split('.'), ...(key === undefined ? [] : [key])], 'key');
  return place ? ` (${place.file}:${place.line}:${place.column})` : '';
}
