import type { Phase } from '../reconcile/status.ts';
import type { StatusDocument } from '../reconcile/status-document.ts';

/**
 * Leaves out of a status the phases that were over when `found` was read: a service tells those of earlier changes as well. One
 * that was under way then stays, because the apply waits for it.
 */
export function withOwnPhases(status: StatusDocument, found: StatusDocument): StatusDocument {
  const earlier = new Set(found.phases.filter(({ ms }) => ms !== undefined).map(nameOf));
  return { ...status, phases: status.phases.filter((phase) => !earlier.has(nameOf(phase))) };
}

function nameOf({ name, startedAt }: Phase): string {
  return `${name} ${startedAt}`;
}
