import type { DocumentFacts, Locate } from '../../profiles/document/load.ts';
import type { ApplyEvent, ApplyOutcome } from '../../src/client/apply.ts';
import type { Plan, Target } from '../../src/plan/change.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Finding } from '../../src/settings/finding.ts';

/** The result of `validate`. */
export interface ValidationReport {
  documents: readonly DocumentFacts[];
  findings: readonly Finding[];
  warnings: readonly string[];
}

/** Events of an apply outside of the client's loop. */
export type SurroundingEvent =
  | { type: 'lock-held'; pid: number; since: string }
  | { type: 'starting'; driver?: string }
  | { type: 'started'; target: Target };

/**
 * Output of the new commands. A view owns the wording; commands return data. Results go to stdout, events and
 * everything else to stderr. The JSON form is stable: fields are added, never changed.
 */
export interface View {
  /** `locate` finds the profile line of a change. */
  plan(plan: Plan, locate?: Locate): void;
  diff(plan: Plan): void;
  status(status: StatusDocument): void;
  validation(report: ValidationReport): void;
  event(event: ApplyEvent | SurroundingEvent, locate?: Locate): void;
  applied(outcome: ApplyOutcome): void;
  /** Clears drawn events, also after a failure. */
  endEvents(): void;
  warnings(warnings: readonly string[]): void;
}
