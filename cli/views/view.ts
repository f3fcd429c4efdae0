import type { DocumentFacts, Locate } from '../../profiles/document/load.ts';
import type { ApplyEvent, ApplyOutcome } from '../../src/client/carry-out.ts';
import { managedBy, managerOf, managerText } from '../../src/client/managers.ts';
import { whenText } from '../../src/client/when.ts';
import { defined } from '../../src/json.ts';
import type { Change, Plan, Target } from '../../src/plan/change.ts';
import type { UserFileChange } from '../../src/plan/user-files.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { type Finding, formatFindings } from '../../src/settings/issue.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { type FieldManager, isRemoved } from '../../src/state/field-managers.ts';
import type { Io } from '../command.ts';
import { entryLines } from './difference-text.ts';
import { restoreCommand } from './history-text.ts';
import { keptText, planText, targetText, transition, userFilesText, warningsText } from './plan-text.ts';
import { type Progress, progress } from './progress.ts';
import { phasesText, statusText } from './status-text.ts';
import { count, durationText, jsonText, pathText, plainText, type Style, style } from './text.ts';

/** The result of `validate`. */
interface ValidationReport {
  documents: readonly DocumentFacts[];
  findings: readonly Finding[];
  warnings: readonly string[];
}

/** Events of an apply that occur outside of the client's loop. */
type SurroundingEvent =
  | { type: 'lock-held'; pid: number; since: string }
  | { type: 'starting'; driver?: string; files: readonly UserFileChange[]; advice?: string }
  | { type: 'started'; target: Target };

/**
 * Output of the new commands. A view owns the wording; commands return data. Results go to stdout, events and
 * everything else to stderr. The JSON form is stable: fields are added, never changed.
 */
export interface View {
  /** Shows a plan. `locate` finds the profile line of a change. */
  plan(plan: Plan, locate?: Locate): void;
  /** Shows differences. `managers` are those of the live values. */
  diff(plan: Plan, managers: readonly FieldManager[]): void;
  status(status: StatusDocument): void;
  validation(report: ValidationReport): void;
  event(event: ApplyEvent | SurroundingEvent, locate?: Locate): void;
  applied(outcome: ApplyOutcome): void;
  /** Clears drawn events, even after a failure. */
  endEvents(): void;
  warnings(warnings: readonly string[]): void;
}

/** The flag `-o` of every command with two views. */
export const OUTPUT_FLAG = {
  type: 'string',
  short: 'o',
  summary: 'Output format',
  values: ['text', 'json', 'yaml'],
  yamlFromJson: true,
} as const;

/** Returns the view for `-o`; text by default. */
export function viewFor(output: string | undefined, io: Io): View {
  return output === 'json' ? jsonView(io) : humanView(io);
}

/** Returns the view for people. */
function humanView(io: Io): View {
  const paint = style(io.color);
  const steps = progress(io, paint);
  return {
    plan: (plan, locate) => io.say(planText(plan, paint, locate)),
    diff: (plan, managers) => io.say(diffText(plan, managers, paint)),
    status: (status) => io.say(statusText(status, paint)),
    validation: (report) => printValidation(io, report),
    event: (event, locate) => printEvent(io, paint, steps, event, locate),
    endEvents: () => steps.end(),
    applied: (outcome) => io.say(appliedText(outcome, steps, paint)),
    warnings: (warnings) => {
      for (const warning of warnings) io.err(`${paint.warn('warning:')} ${plainText(warning)}\n`);
    },
  };
}

function diffText(plan: Plan, managers: readonly FieldManager[], paint: Style): string {
  const head = targetText(plan.target, plan.basis, paint);
  if (plan.changes.length === 0) return `${head}\n\nNo differences.\n`;
  const lines = plan.changes.flatMap((change) => {
    const { brief, entries } = transition(change);
    return [
      `  ${pathText(change)}: ${brief}`,
      ...entryLines(entries),
      ...managerLine(managerOf(managers, change)),
      ...(change.blocked ? [`      ${paint.bad('cannot be changed')}: ${plainText(change.blocked.message)}`] : []),
    ];
  });
  return `${head}\n\nlive → profile\n${lines.join('\n')}\n\n${count(plan.changes.length, 'difference')}\n`;
}

function managerLine(manager: FieldManager | undefined): string[] {
  if (!manager) return [];
  const { at, generation } = manager;
  const who = `${managerText(manager)} ${whenText(at, Date.now())}, generation ${generation}`;
  return [`      ${isRemoved(manager) ? 'removed' : 'set'} by ${plainText(who)}`];
}

function printValidation(io: Io, { documents, findings }: ValidationReport): void {
  for (const line of formatFindings(findings)) io.say(`${line}\n`);
  if (findings.length > 0) io.err(`${count(findings.length, 'error')}\n`);
  else for (const document of documents) io.err(`${document.file}: valid ${formText(document)}\n`);
}

function formText({ form, version }: DocumentFacts): string {
  if (version === SCHEMA_VERSION) return form;
  return `${form}, read as version ${SCHEMA_VERSION} (written for ${version})`;
}

function printEvent(
  io: Io,
  paint: Style,
  steps: Progress,
  event: ApplyEvent | SurroundingEvent,
  locate: Locate | undefined,
): void {
  if (event.type !== 'progress') steps.interrupt();
  switch (event.type) {
    case 'lock-held':
      io.err(`Waiting for another apply (pid ${event.pid}, since ${event.since}).\n`);
      return;
    case 'starting':
      io.err(`Starting the service${event.driver ? ` with driver ${event.driver}` : ''}.\n`);
      if (event.advice !== undefined) io.err(`notice: ${event.advice}\n`);
      if (event.files.length > 0) io.err(`${userFilesText('Its start changes your files:', event.files, paint)}\n`);
      return;
    case 'started':
      io.err(
        `The service is running${event.target.simulated ? ` (driver ${event.target.driver}, SIMULATED)` : ` (driver ${event.target.driver})`}.\n`,
      );
      return;
    case 'planned':
      if (event.plan.changes.length > 0) io.err(planText(event.plan, paint, locate));
      else io.err(`${unchangedText(event.plan, paint)}\n`);
      return;
    case 'skipped':
      io.err(`Skipped because of ${byLocks(event.changes) ? 'locks' : 'locks or the driver'}:\n`);
      for (const change of event.changes)
        io.err(`  ! ${pathText(change)}: ${plainText(change.blocked?.message ?? '')}\n`);
      return;
    case 'moved':
      io.err('The settings changed in the meantime; planning again.\n');
      return;
    case 'covered':
      io.err(
        `Made the snapshot ${plainText(event.snapshot)}. To get the lost data back: ${restoreCommand(event.snapshot)}\n`,
      );
      return;
    case 'sent':
      io.err(`Sent the ${event.what === 'settings' ? 'settings' : 'power state'}.\n`);
      if (event.ignoredKeys.length > 0) io.err(`The service ignored: ${plainText(event.ignoredKeys.join(', '))}\n`);
      return;
    case 'retrying':
      io.err('No differences, but the backend failed; retrying.\n');
      return;
    case 'files':
      io.err('Tried again to change your files.\n');
      return;
    case 'earlier':
      io.err('The service is still carrying out an earlier apply; waiting for it.\n');
      return;
    case 'returning':
      io.err(`The change failed; going back to generation ${event.to}.\n`);
      return;
    case 'step':
      io.err(`${stepText(event)}\n`);
      return;
    case 'progress':
      steps.show(event.status);
  }
}

function stepText({ step: { what, name }, again }: Extract<ApplyEvent, { type: 'step' }>): string {
  if (what === 'forward') return `Port forward${again ? ' sent again' : ''}: ${plainText(name)}`;
  return `${what === 'install' ? 'Installing' : 'Uninstalling'} the extension ${plainText(name)}.`;
}

/** Formats a plan without changes, whose warnings and reactions of kept profiles are still shown. */
function unchangedText(plan: Plan, paint: Style): string {
  const parts = [targetText(plan.target, plan.basis, paint), keptText(plan), warningsText(plan, paint)];
  return parts.filter((part) => part !== '').join('\n');
}

function byLocks(changes: readonly Change[]): boolean {
  return changes.every(({ blocked }) => blocked?.by === 'lock');
}

function appliedText(
  { outcome, plan, skipped, status, staysStopped, kept, ms }: ApplyOutcome,
  steps: Progress,
  paint: Style,
): string {
  const later = plan.deferred ? ` ${count(plan.deferred.changes.length, 'change')} deferred.` : '';
  const keeps = kept === undefined ? '' : `Kept as ${plainText(kept)}.\n`;
  const rest =
    later +
    (skipped.length === 0 ? '' : ` ${count(skipped.length, byLocks(skipped) ? 'locked change' : 'change')} skipped.`);
  const where = status.engine.endpoint === undefined ? '' : `Endpoint: ${plainText(status.engine.endpoint)}\n`;
  const stays = staysStopped ? 'The backend stays stopped; `rdctl start` starts it.\n' : '';
  switch (outcome) {
    case 'unchanged':
      return `${paint.good('Nothing to change.')}${rest}\n${keeps}${stays}${where}`;
    case 'sent':
      return `Sent; not waiting.${rest} Follow it with \`rdctl status\`.\n${keeps}`;
    case 'applied': {
      const done = paint.good(staysStopped ? 'Stored' : 'Converged');
      const phases = phasesText(steps.unshown(status.phases));
      return `${phases === '' ? '' : `${phases}\n`}${done} in ${durationText(ms)}.${rest}\n${keeps}${stays}${where}`;
    }
  }
}

/** Returns the view that prints one JSON document on stdout per command (docs/profiles.md). Warnings stay on stderr as text. */
function jsonView(io: Io): View {
  const print = (document: unknown) => io.out(jsonText(document));
  return {
    plan: (plan) => print(plan),
    diff: (plan, managers) => print(diffDocument(plan, managers)),
    status: print,
    validation: (report) => print(validationDocument(report)),
    event: () => undefined,
    endEvents: () => undefined,
    applied: (outcome) => print(applyDocument(outcome)),
    warnings: (warnings) => {
      for (const warning of warnings) io.err(`warning: ${warning}\n`);
    },
  };
}

/** Returns the differences without costs, because nothing is being applied. */
function diffDocument(plan: Plan, managers: readonly FieldManager[]): object {
  return {
    kind: 'Diff',
    formatVersion: 1,
    target: plan.target,
    basis: plan.basis,
    differences: plan.changes.map((change) => difference(change, managerOf(managers, change))),
  };
}

function difference({ path, key, action, before, after, blocked }: Change, manager: FieldManager | undefined): object {
  return { path, key, action, live: before, profile: after, blocked, managedBy: manager && managedBy(manager) };
}

function validationDocument({ documents, findings, warnings }: ValidationReport): object {
  const files = documents.map(({ file }) => file);
  return { kind: 'Validation', formatVersion: 1, valid: findings.length === 0, files, documents, findings, warnings };
}

function applyDocument({ outcome, plan, skipped, writes, status, kept, ms }: ApplyOutcome): object {
  return {
    kind: 'ApplyReport',
    formatVersion: 1,
    outcome,
    target: plan.target,
    changes: plan.changes,
    warnings: plan.warnings,
    skipped,
    ...(plan.deferred ? { deferred: plan.deferred } : {}),
    ...(plan.drift ? { drift: plan.drift } : {}),
    ...defined({ kept }),
    writes,
    converged: status.converged,
    backendState: status.backendState,
    generation: status.generation,
    engine: status.engine,
    phases: outcome === 'unchanged' ? [] : status.phases,
    ms,
  };
}
