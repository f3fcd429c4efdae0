import type { ApplyOutcome } from '../../src/client/apply.ts';
import type { Change, Plan } from '../../src/plan/change.ts';
import type { Io } from '../command.ts';
import type { ValidationReport, View } from './view.ts';

/** One JSON document on stdout per command; see docs/profiles.md. Warnings stay on stderr as text. */
export function jsonView(io: Io): View {
  const print = (document: unknown) => io.out(`${JSON.stringify(document, null, 2)}\n`);
  return {
    plan: (plan) => print(plan),
    diff: (plan) => print(diffDocument(plan)),
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

/** Differences without costs, because nothing is being applied. */
function diffDocument(plan: Plan): object {
  return {
    kind: 'Diff',
    formatVersion: 1,
    target: plan.target,
    basis: plan.basis,
    differences: plan.changes.map(difference),
  };
}

function difference({ path, key, action, before, after, blocked }: Change): object {
  return { path, key, action, live: before, profile: after, blocked };
}

function validationDocument({ documents, findings, warnings }: ValidationReport): object {
  const files = documents.map(({ file }) => file);
  return { kind: 'Validation', formatVersion: 1, valid: findings.length === 0, files, documents, findings, warnings };
}

function applyDocument({ outcome, plan, skipped, writes, status, ms }: ApplyOutcome): object {
  return {
    kind: 'ApplyReport',
    formatVersion: 1,
    outcome,
    target: plan.target,
    changes: plan.changes,
    warnings: plan.warnings,
    skipped,
    writes,
    converged: status.converged,
    backendState: status.backendState,
    generation: status.generation,
    engine: status.engine,
    phases: outcome === 'unchanged' ? [] : status.phases,
    ms,
  };
}
