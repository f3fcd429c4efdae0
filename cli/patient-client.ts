import type { Client } from '../src/client/client.ts';
import { answerLimit } from '../src/client/http.ts';
import type { StatusDocument } from '../src/reconcile/status-document.ts';
import type { FlagTable, Io } from './command.ts';
import { serviceLine } from './service-line.ts';

/** Of the commands that show a plan. */
export const PLAN_TIMEOUT_FLAG = {
  timeout: { type: 'duration', summary: 'Longest time to wait for a look at what runs (default 1m)' },
} as const satisfies FlagTable;

export const PLAN_WAIT_MS = 60_000;
const QUIET_MS = 1_000;

/**
 * A client whose plans wait for a look at what runs that succeeds, as while a step is under way, and that says on a terminal what the
 * service does meanwhile. `waitMs` is asked with each plan; after that time one is made without the look, and says so.
 */
export function patientClient(client: Client, io: Io, waitMs: () => number): Client {
  return {
    ...client,
    async plan(request, options) {
      const wait = waitMs();
      const stopShowing = serviceLine(client, io, { text: waitingText, afterMs: QUIET_MS });
      try {
        const timeoutMs = wait + answerLimit({ method: 'POST' });
        return await client.plan(request, { signal: io.signal, timeoutMs, ...options, waitMs: wait });
      } finally {
        await stopShowing();
      }
    },
  };
}

function waitingText({ phases, maintenance, conditions }: StatusDocument): string {
  const step = phases.findLast(({ ms }) => ms === undefined);
  const trouble = conditions.find(({ type, status }) => type === 'Converged' && status !== 'True');
  return `Waiting for a look at what runs: ${step ? `${step.name} …` : (maintenance ?? trouble?.message ?? 'the driver is asked …')}`;
}
