import type { Server } from 'node:net';
import type { Offer, Shell } from '../shell.ts';
import type { Gateway } from './gateway-secret.ts';
import { newSecret } from './gateway-secret.ts';
import type { PullPolicy } from './pull-policy.ts';
import { pullPolicy } from './pull-policy.ts';
import type { RegistryDialer } from './way-out.ts';
import { createRegistryDialer } from './way-out.ts';

/** Restricts an engine to a list of allowed images, for as long as this process runs. */
export interface PullGuard {
  /**
   * Serves with these patterns from now on; `gateway` is the one that the engine was started with, by default a new one.
   * Idempotent while active. Errors as `Shell.offer`.
   */
  hold(patterns: readonly string[], gateway?: Gateway): Promise<Gateway>;
  release(): Promise<void>;
  /** How often the engine has queried its plugin. An engine that responds without a query is not restricted. */
  questions(): number;
}

/** What a server decides by, and its callbacks. */
export interface GuardParts {
  policy: PullPolicy;
  out: RegistryDialer;
  /** The secret that clients of the gateway present. */
  secret: string;
  /** Called for each denied request. */
  refused: (why: string) => void;
  /** Called for each query to the plugin. */
  asked: () => void;
}

/** dockerd and busy clients need some dozens. Without a limit any local program could exhaust the service's file descriptors. */
const MAX_CONNECTIONS = 512;

/** The plugin's share of that. */
export type PluginParts = Omit<GuardParts, 'out' | 'secret'>;

/** The servers for an engine. */
export interface GuardServers {
  /** On a port of the loopback. */
  gateway: (parts: GuardParts) => Server;
  /** On a socket, if the engine asks one. */
  plugin?: { make: (parts: PluginParts) => Server; socket: string };
}

export function pullGuard(shell: Shell, { gateway, plugin }: GuardServers): PullGuard {
  const policy = pullPolicy();
  let questions = 0;
  const parts: Omit<GuardParts, 'secret'> = {
    policy,
    out: createRegistryDialer(shell.environment),
    refused: (why) => shell.log('info', 'an image was denied', { why }),
    asked: () => {
      questions += 1;
    },
  };
  let held: { offers: Offer[]; gateway: Gateway } | undefined;
  // Observations and steps may overlap, and must not open the same socket twice.
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  async function open({ port, secret }: Gateway): Promise<Gateway> {
    const offers: Offer[] = [];
    try {
      const server = gateway({ ...parts, secret });
      server.maxConnections = MAX_CONNECTIONS;
      const first = await shell.offer(server, { port });
      offers.push(first);
      if (plugin) offers.push(await shell.offer(plugin.make(parts), { socket: plugin.socket }));
      held = { offers, gateway: { port: first.port, secret } };
      return held.gateway;
    } catch (error) {
      await close(offers);
      throw error;
    }
  }

  return {
    hold: (patterns, wanted) =>
      inTurn(async () => {
        if (!sameTexts(patterns, policy.list().patterns)) {
          policy.set(patterns);
          for (const { pattern, reason } of policy.list().unusable) {
            shell.log('warn', 'a pattern of the allowed images matches nothing', { pattern, reason });
          }
        }
        if (held && (wanted === undefined || sameGateway(wanted, held.gateway))) return held.gateway;
        if (held) await close(held.offers);
        held = undefined;
        return open(wanted ?? { port: 0, secret: newSecret() });
      }),
    release: () =>
      inTurn(async () => {
        const { offers = [] } = held ?? {};
        held = undefined;
        await close(offers);
      }),
    questions: () => questions,
  };
}

function sameGateway(a: Gateway, b: Gateway): boolean {
  return a.port === b.port && a.secret === b.secret;
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

async function close(offers: readonly Offer[]): Promise<void> {
  await Promise.all(offers.map((offer) => offer.close()));
}
