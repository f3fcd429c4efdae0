import type { DocumentFacts, Locate } from '../../profiles/document/load.ts';
import type { ApplyEvent, ApplyOutcome } from '../../src/client/apply.ts';
import type { Plan, Target } from '../../src/plan/change.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Finding } from '../../src/settings/finding.ts';

/** What `validate` found. */
export interface ValidationReport {
  documents: readonly DocumentFacts[];
  findings: readonly Finding[];
  warnings: readonly string[];
}

/** What happens around an apply that the client loop does not see. */
export type SurroundingEvent =
  | { type: 'lock-held'; pid: number; since: string }
  | { type: 'starting'; driver?: string }
  | { type: 'started'; target: Target };

/**
 * What the new commands show. A view owns the words; the work returns data. Results go to stdout, events and everything else to
 * stderr. The JSON form is a promise: fields are added, never changed.
 */
export interface View {
  /** `locate` finds where a profile asks for a change. */
  plan(plan: Plan, locate?: Locate): void;
  diff(plan: Plan): void;
  status(status: StatusDocument): void;
  validation(report: ValidationReport): void;
  event(event: ApplyEvent | SurroundingEvent, locate?: Locate): void;
  applied(outcome: ApplyOutcome): void;
  /** Ends what events have drawn, also after a failure. */
  endEvents(): void;
  warnings(warnings: readonly string[]): void;
}
