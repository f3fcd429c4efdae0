import type { Client } from '../../src/client/client.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import type { Io } from '../command.ts';
import { plainText } from '../views/value.ts';

/** How long a command waits for the plan that it does not display. */
const LOOK_MS = 1_000;

/**
 * Prints to stderr what a request is about to interrupt, in a plan's wording, when the service is ours and something
 * runs. Never fails the command.
 */
export async function printInterruptions(
  client: Client,
  request: PlanRequest,
  io: Io,
  inWords: (item: Plan['blastRadius'][number]) => string = ({ what }) => what,
): Promise<boolean> {
  if (client.foreign) return false;
  const plan = await client.plan(request, { signal: io.signal, waitMs: LOOK_MS }).catch(() => undefined);
  if (!plan) return false;
  for (const item of plan.blastRadius) {
    io.err(`notice: ${plainText(inWords(item))}${item.lost ? ' (cannot be had back)' : ''}\n`);
  }
  return plan.blastRadius.length > 0;
}
