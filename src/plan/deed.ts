import type { JsonObject } from '../json.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { DesiredBackend } from './backend.ts';
import type { Plan } from './change.ts';
import type { ExtensionStep } from './extension-changes.ts';
import type { ForwardSteps, ForwardsReport } from './port-forwards.ts';

/** What carries a plan out, without its blocked changes: one write of the desired state, and the steps that follow it. */
export interface Deed {
  /** The desired state to write; members that nothing changes are those in force. `power`: absent where the request does not manage it. */
  next: Omit<DesiredBackend, 'power'> & Partial<Pick<DesiredBackend, 'power'>>;
  /** The settings that differ, as a body of `PUT /v1/settings`; absent where none does. */
  patch?: JsonObject;
  steps: DeedSteps;
  /** What is in force once the steps are done. `forwards`: absent where none are requested, or they cannot be listed. */
  after: { settings: Settings; forwards?: ForwardsReport };
}

/** What the write does not change. */
export interface DeedSteps {
  forwards: ForwardSteps;
  /** Once the backend has converged. */
  extensions: ExtensionStep[];
}

/** A plan with its deed: the document is shown and agreed to, the deed has the values that it masks. */
export interface PlannedDeed {
  plan: Plan;
  deed: Deed;
}
