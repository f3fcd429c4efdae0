import type { JsonObject } from '../json.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { DesiredBackend } from './backend.ts';
import type { Plan } from './change.ts';
import type { ExtensionStep } from './extension-changes.ts';
import type { ForwardSteps, ForwardsReport } from './port-forwards.ts';

/** The work that carries a plan out, without its blocked changes: one write of the desired state, and the steps that follow it. */
export interface Deed {
  /** The desired state to write; unchanged members have their current values. `power`: absent if the request does not manage it. */
  next: Omit<DesiredBackend, 'power'> & Partial<Pick<DesiredBackend, 'power'>>;
  /** The settings that differ, as a body of `PUT /v1/settings`; absent if none differ. */
  patch?: JsonObject;
  steps: DeedSteps;
  /** The state in force after the steps. `forwards`: absent if none are requested or they cannot be listed. */
  after: { settings: Settings; forwards?: ForwardsReport };
}

/** The steps of a plan beside the write of the desired state. */
export interface DeedSteps {
  forwards: ForwardSteps;
  /** Performed after the backend has converged. */
  extensions: ExtensionStep[];
}

/** A plan with its deed. The document is shown for consent; the deed has the values that the document masks. */
export interface PlannedDeed {
  plan: Plan;
  deed: Deed;
}
