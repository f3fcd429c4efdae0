import type { Client } from '../../src/client/client.ts';
import { blockingCondition } from '../../src/client/converge.ts';
import { answerLimit } from '../../src/client/http.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { statusLine } from '../../src/os/status-line.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import { NO_SNAPSHOT } from '../../src/plan/losses.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { foreseenText } from './foreseen-text.ts';
import { plainText } from './text.ts';

export const PLAN_WAIT_MS = 60_000;
const QUIET_MS = 1_000;

/**
 * A client whose `planWithLive` waits for a successful observation, e.g. while a step is running, and shows on a terminal what the
 * service does meanwhile, as `apply` does while a snapshot is made. `waitMs` is evaluated per plan; after that time the plan is made without an observation, and
 * says so.
 */
export function patientClient(client: Client, io: Io, waitMs: () => number): Client {
  return {
    ...client,
    async planWithLive(request, options) {
      const wait = waitMs();
      const stopShowing = serviceLine(client, io, { text: waitingText, afterMs: QUIET_MS });
      try {
        const timeoutMs = wait + answerLimit({ method: 'POST' });
        return await client.planWithLive(request, { signal: io.signal, timeoutMs, ...options, waitMs: wait });
      } finally {
        await stopShowing();
      }
    },
    async apply(request, tag, options) {
      // A snapshot may take minutes.
      const stopShowing = serviceLine(client, io, { text: ({ maintenance }) => maintenance, afterMs: QUIET_MS });
      try {
        return await client.apply(request, tag, options);
      } finally {
        await stopShowing();
      }
    },
  };
}

function waitingText(status: StatusDocument): string {
  const step = stepText(status);
  const trouble = status.conditions.find(({ type, status: is }) => type === 'Converged' && is !== 'True');
  return `Waiting for the current state: ${step ?? status.maintenance ?? trouble?.message ?? 'querying the driver …'}`;
}

function stepText({ phases }: StatusDocument): string | undefined {
  const step = phases.findLast(({ ms }) => ms === undefined);
  return step && `${step.name} …`;
}

/** What a service works on that comes back after work on its data; `undefined` for one that is back. */
export function workText(status: StatusDocument): string | undefined {
  if (status.maintenance !== undefined) return status.maintenance;
  const open = blockingCondition(status);
  return open && [stepText(status), open.message].filter((text) => text !== undefined).join(' ');
}

/** Of a line that can be cleared: one row of the terminal. */
const MAX_LENGTH = 100;

/** Elsewhere than on a terminal, a line is printed after so long, and no sooner after the line before. */
const PRINT_MS = 15_000;

export interface ServiceLine {
  /** The text of the line; `undefined` draws nothing. */
  text(status: StatusDocument): string | undefined;
  /** Where stderr is no terminal, print what the service does once it takes long, line by line. */
  prints?: true;
  /** Delay before the line is first drawn, in milliseconds. */
  afterMs?: number;
}

/**
 * Draws a line on the terminal with what the service does while a command waits for it. Returns a function that removes
 * it.
 */
export function serviceLine(
  client: Client,
  io: Io,
  { text, afterMs = 0, prints }: ServiceLine,
  clock: Clock = steadyClock,
): () => Promise<void> {
  // Other applications have no such status.
  if (client.foreign || !(io.progress || prints)) return async () => {};
  const ending = new AbortController();
  const line = statusLine(io);
  let printed = { text: '', at: Number.NEGATIVE_INFINITY };
  const showing = (async () => {
    const quietMs = io.progress ? afterMs : PRINT_MS;
    if (quietMs > 0) await clock.sleep(quietMs, ending.signal);
    if (ending.signal.aborted) return;
    // The command itself reports a service that is away.
    await client.watch?.(draw, ending.signal).catch(() => undefined);
  })();

  function draw(status: StatusDocument): void {
    const shown = text(status);
    if (shown === undefined || ending.signal.aborted) return;
    if (!io.progress) print(plainText(shown));
    else line.draw(plainText(shown).slice(0, Math.min(io.columns ?? MAX_LENGTH, MAX_LENGTH)));
  }

  function print(shown: string): void {
    if (shown === printed.text || clock.now() - printed.at < PRINT_MS) return;
    printed = { text: shown, at: clock.now() };
    io.err(`  ${shown}\n`);
  }

  return async () => {
    ending.abort();
    await showing;
    line.clear();
  };
}

/** How long a command waits for the plan that it does not display. */
const HIDDEN_PLAN_MS = 1_000;

/**
 * Prints to stderr what a request is about to interrupt, in a plan's wording, when the service is ours and something
 * runs. Never fails the command.
 */
export async function printInterruptions(
  client: Client,
  request: PlanRequest,
  io: Io,
  describe: (item: Plan['blastRadius'][number]) => string = ({ what }) => what,
): Promise<boolean> {
  const plan = await hiddenPlan(client, request, io);
  if (!plan) return false;
  printBlastRadius(plan, io, describe);
  return plan.blastRadius.length > 0;
}

/** The same for settings that are about to be written, with what kept profiles will make of them. */
export async function printConsequences(client: Client, request: PlanRequest, io: Io): Promise<void> {
  const plan = await hiddenPlan(client, request, io);
  if (!plan) return;
  printBlastRadius(plan, io, ({ what }) => what);
  for (const warning of plan.warnings) if (warning.startsWith(NO_SNAPSHOT)) io.err(`warning: ${plainText(warning)}\n`);
  const worthSaying = (plan.drift ?? []).filter(({ state, heal }) => state !== 'reported' || heal === 'warn');
  for (const drift of worthSaying) io.err(`warning: ${foreseenText(drift)}\n`);
}

async function hiddenPlan(client: Client, request: PlanRequest, io: Io): Promise<Plan | undefined> {
  if (client.foreign) return undefined;
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

/** `driver host`; a simulation is always marked. */
export function driverText({ name, simulated }: StatusDocument['driver']): string {
  return `driver ${name}${simulated ? ' (simulated: no real machine or engine)' : ''}`;
}
