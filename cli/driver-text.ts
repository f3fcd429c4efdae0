import type { StatusDocument } from '../src/reconcile/status-document.ts';

/** `driver host`; a simulation always says that it is one. */
export function driverText({ name, simulated }: StatusDocument['driver']): string {
  return `driver ${name}${simulated ? ' (a model: nothing real is touched)' : ''}`;
}
