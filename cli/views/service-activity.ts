import type { EventClient, PlanClient } from '../../src/client/contract.ts';
import { answerLimit } from '../../src/client/http.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { PRINT_MS, waitingLine } from '../../src/os/waiting-line.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import { NO_SNAPSHOT } from '../../src/plan/losses.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { foreseenText } from './foreseen-text.ts';
import { plainText } from './text.ts';
import { phaseText } from './work-text.ts';

export const PLAN_WAIT_MS = 60_000;
const QUIET_MS = 1_000;

/**
 * Returns a client whose `planWithLive` waits for a successful observation, e.g. while a step is running, and shows the activity of the service
 * meanwhile; its `apply` shows it while a snapshot is made. `waitMs` is evaluated per plan; after that time the plan is made without an observation,
 * and says so.
 */
export function patientClient<C extends PlanClient & EventClient>(client: C, io: Io, waitMs: () => number): C {
  return {
    ...client,
    async planWithLive(request, options) {
      const wait = waitMs();
      const stopShowing = serviceLine(client, io, { text: waitingText, afterMs: QUIET_MS, prints: true });
      try {
        const timeoutMs = wait + answerLimit({ method: 'POST' });
        return await client.planWithLive(request, { signal: io.signal, timeoutMs, ...options, waitMs: wait });
      } finally {
        await stopShowing();
      }
    },
    async apply(request, tag, options) {
      // A snapshot may take minutes.
      const stopShowing = serviceLine(client, io, {
        text: ({ maintenance }) => maintenance,
        afterMs: QUIET_MS,
        prints: true,
      });
      try {
        return await client.apply(request, tag, options);
      } finally {
        await stopShowing();
      }
    },
  };
}

function waitingText(status: StatusDocument): string {
  const step = status.phases.findLast(({ ms }) => ms === undefined);
  const trouble = status.conditions.find(({ type, status: is }) => type === 'Converged' && is !== 'True');
  return `Waiting for the current state: ${(step && phaseText(step)) ?? status.maintenance ?? trouble?.message ?? 'querying the driver …'}`;
}

export interface ServiceLine {
  /** Returns the text of the line; undefined draws nothing. */
  text(status: StatusDocument): string | undefined;
  /** Whether to print the activity line by line once it takes long, if stderr is no terminal. */
  prints?: true;
  /** Milliseconds before the line is first drawn. */
  afterMs?: number;
}

/** Draws a line on the terminal with the activity of the service while a command waits for it. Returns a function that removes it. */
export function serviceLine(
  { watch }: EventClient,
  io: Io,
  { text, afterMs = 0, prints }: ServiceLine,
  clock: Clock = steadyClock,
): () => Promise<void> {
  if (!watch || !(io.progress || prints)) return async () => {};
  const ending = new AbortController();
  const line = waitingLine(io, { afterMs, drawsOnly: !prints }, clock);
  const showing = (async () => {
    const quietMs = io.progress ? afterMs : PRINT_MS;
    if (quietMs > 0) await clock.sleep(quietMs, ending.signal);
    if (ending.signal.aborted) return;
    const draw = (status: StatusDocument) => {
      const shown = text(status);
      line.show(shown && plainText(shown));
    };
    // The command itself reports a service that is away.
    await watch(draw, ending.signal).catch(() => undefined);
  })();

  return async () => {
    ending.abort();
    await showing;
    line.end();
  };
}

/** Milliseconds that a command waits for a plan that it does not display. */
const HIDDEN_PLAN_MS = 1_000;

/**
 * Prints to stderr the items that a request is about to interrupt, in a plan's wording, when the service is ours and something runs. Never fails the
 * command.
 */
export async function printInterruptions(
  client: PlanClient,
  request: PlanRequest,
  io: Io,
  describe: (item: Plan['blastRadius'][number]) => string = ({ what }) => what,
): Promise<boolean> {
  const plan = await hiddenPlan(client, request, io);
  if (!plan) return false;
  printBlastRadius(plan, io, describe);
  return plan.blastRadius.length > 0;
}

/** Prints to stderr the items that a settings write is about to interrupt, and the reactions of kept profiles. Never fails the command. */
export async function printConsequences(client: PlanClient, request: PlanRequest, io: Io): Promise<void> {
  const plan = await hiddenPlan(client, request, io);
  if (!plan) return;
  printBlastRadius(plan, io, ({ what }) => what);
  for (const warning of plan.warnings) if (warning.startsWith(NO_SNAPSHOT)) io.err(`warning: ${plainText(warning)}\n`);
  const worthSaying = (plan.drift ?? []).filter(({ state, heal }) => state !== 'reported' || heal === 'warn');
  for (const drift of worthSaying) io.err(`warning: ${foreseenText(drift)}\n`);
}

async function hiddenPlan(client: PlanClient, request: PlanRequest, io: Io): Promise<Plan | undefined> {
  const options = { signal: io.signal, waitMs: HIDDEN_PLAN_MS, how: 'set' as const };
  return client.plan(request, options).catch(() => undefined);
}

function printBlastRadius(
  { blastRadius, snapshot }: Plan,
  io: Io,
  describe: (item: Plan['blastRadius'][number]) => string,
): void {
  const fate = snapshot ? ' (comes back only from the snapshot that is made first)' : ' (cannot be recovered)';
  for (const item of blastRadius) io.err(`notice: ${plainText(describe(item))}${item.lost ? fate : ''}\n`);
}

/** Prints the startup notices of the service on stderr. */
export function showNotices({ notices }: Pick<StatusDocument, 'notices'>, io: Pick<Io, 'err'>): void {
  for (const notice of notices) io.err(`notice: ${plainText(notice)}\n`);
}

/** Formats a driver: `driver host`; a simulation is always marked. */
export function driverText({ name, simulated }: StatusDocument['driver']): string {
  return `driver ${name}${simulated ? ' (simulated: no real machine or engine)' : ''}`;
}
