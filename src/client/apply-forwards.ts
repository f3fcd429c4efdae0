import { RdError } from '../errors.ts';
import type { Plan } from '../plan/change.ts';
import type { Client } from './client.ts';
import {
  blindSteps,
  type ForwardSteps,
  forwardName,
  forwardSteps,
  mentionsForwards,
  type WantedForwards,
  withPortForwards,
} from './port-forwards.ts';

/** What was sent for the forwards. `again` is true where it may have been there already, because nobody can see it. */
export interface ForwardsSent {
  /** `default/web:80 → 8080` */
  names: string[];
  again: boolean;
}

/** The plan with the forwards that a profile asks for, held against those that are there. */
export async function planForwards(client: Client, plan: Plan, wanted: WantedForwards): Promise<Plan> {
  if (!mentionsForwards(wanted)) return plan;
  return withPortForwards(plan, wanted, await client.portForwards());
}

/**
 * Makes the forwards as planned. Where they can be seen only what differs is sent, else all of them, once. Throws the refusal of
 * the service, naming the forward; those before it are made then.
 */
export async function applyForwards(
  client: Client,
  plan: Plan,
  wanted: WantedForwards,
  signal: AbortSignal,
): Promise<ForwardsSent> {
  const again = client.foreign === true;
  const steps: ForwardSteps = again ? blindSteps(wanted) : forwardSteps(plan, wanted);
  const names: string[] = [];
  for (const key of steps.remove) {
    await client.removePortForward(key, { signal }).catch(named(forwardName(key)));
    if (!steps.ensure.some((entry) => forwardName(entry) === forwardName(key)))
      names.push(`${forwardName(key)} → (removed)`);
  }
  for (const forward of steps.ensure) {
    await client.addPortForward(forward, { signal }).catch(named(forwardName(forward)));
    names.push(`${forwardName(forward)} → ${forward.hostPort}`);
  }
  return { names, again };
}

function named(name: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RdError) || error.message.includes(name)) throw error;
    throw new RdError(error.code, `The forward ${name} could not be set: ${error.message}.`, {
      cause: error,
      details: error.details,
      advice: error.advice ?? 'Choose another host port or see what holds this one, and apply again.',
    });
  };
}
