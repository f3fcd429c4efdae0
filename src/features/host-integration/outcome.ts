import { messageOf } from '../../errors.ts';
import type { Condition } from '../../reconcile/contract.ts';

/** A part of the user's environment outside of our own directories. */
type IntegrationPart = 'path' | 'docker-context' | 'kubeconfig' | 'autostart';

/** The result for one user file when it was last checked. */
export interface IntegrationOutcome {
  part: IntegrationPart;
  /** Absolute path; on Windows the autostart entry is a registry key. */
  file: string;
  /**
   * `managed`: our content is in place. `clean`: it has none of our content, as desired. `left`: not touched, because it is the user's or another
   * program's choice. `failed`: it differs from the desired content.
   */
  state: 'managed' | 'clean' | 'left' | 'failed';
  /** Reason for `left` and `failed`, as a sentence without a period. */
  message?: string;
}

/** The integration, as seen by the rest of the service. */
export interface HostIntegration {
  /** A clause that says why nothing outside of our directories is touched; absent while the integration is active. */
  readonly offBecause?: string;
  /** Returns one outcome per file, from the last run; empty while the integration is off or has not started. */
  integrationOutcomes(): readonly IntegrationOutcome[];
}

/** The result of an operation on a file; `left` gives the reason why it was not touched. */
type Result = 'managed' | 'clean' | { left: string };

/** Runs an operation and turns any result into an outcome. */
export async function outcomeOf(
  what: Pick<IntegrationOutcome, 'part' | 'file'>,
  work: () => Promise<Result>,
): Promise<IntegrationOutcome> {
  try {
    const result = await work();
    return typeof result === 'string' ? { ...what, state: result } : { ...what, state: 'left', message: result.left };
  } catch (error) {
    // Even a bug must not crash the service; the sentence reports the failure.
    const message = messageOf(error);
    return { ...what, state: 'failed', message };
  }
}

/** Returns the condition of files that could not be changed; empty without any. `since` is in milliseconds since 1970. */
export function failureConditions(
  outcomes: readonly IntegrationOutcome[],
  { observedGeneration, since }: { observedGeneration: number; since: number },
): Condition[] {
  const files = outcomes.flatMap(({ file, state }) => (state === 'failed' ? [file] : []));
  if (files.length === 0) return [];
  return [
    {
      type: 'UserFilesReady',
      status: 'False',
      reason: 'NotChanged',
      concern: 'attention',
      message: `Not as desired, because they cannot be changed: ${files.join(', ')}.`,
      observedGeneration,
      lastTransitionTime: new Date(since).toISOString(),
    },
  ];
}
