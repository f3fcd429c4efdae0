import type { Server } from 'node:net';
import type { Offer, Shell } from '../shell.ts';
import type { PullPolicy } from './pull-policy.ts';
import { pullPolicy } from './pull-policy.ts';
import type { WayOut } from './way-out.ts';
import { wayOut } from './way-out.ts';

/** What keeps an engine to a list of allowed images, for as long as this process holds it. */
export interface PullGuard {
  /**
   * Serves with these patterns from now on; `port` is that of the gateway when the engine was started, a free one unless told.
   * Harmless while it is held. Returns the port. Errors as `Shell.offer`.
   */
  hold(patterns: readonly string[], port?: number): Promise<number>;
  release(): Promise<void>;
  /** How often the engine has asked its plugin. An engine that answers without asking is not held to anything. */
  questions(): number;
}

/** What a server decides by, and whom it tells. */
export interface GuardParts {
  policy: PullPolicy;
  out: WayOut;
  /** Told of each request that was denied. */
  refused: (why: string) => void;
  /** Told of each question to the plugin. */
  asked: () => void;
}

type MakeServer = (parts: GuardParts) => Server;

/** The servers that an engine has to do with. */
export interface GuardServers {
  /** On a port of the loopback. */
  gateway: MakeServer;
  /** On a socket, if the engine asks one. */
  plugin?: { make: MakeServer; socket: string };
}

export function pullGuard(shell: Shell, { gateway, plugin }: GuardServers): PullGuard {
  const policy = pullPolicy();
  let questions = 0;
  const parts: GuardParts = {
    policy,
    out: wayOut(shell.environment),
    refused: (why) => shell.log('info', 'an image was denied', { why }),
    asked: () => {
      questions += 1;
    },
  };
  let held: { offers: Offer[]; port: number } | undefined;
  // Looks and steps may come at the same time, and must not open the same place twice.
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  async function open(port: number): Promise<number> {
    const offers: Offer[] = [];
    try {
      const first = await shell.offer(gateway(parts), { port });
      offers.push(first);
      if (plugin) offers.push(await shell.offer(plugin.make(parts), { socket: plugin.socket }));
      held = { offers, port: first.port };
      return first.port;
    } catch (error) {
      await close(offers);
      throw error;
    }
  }

  return {
    hold: (patterns, port) =>
      inTurn(async () => {
        if (!sameTexts(patterns, policy.list().patterns)) {
          policy.set(patterns);
          for (const { pattern, reason } of policy.list().unusable) {
            shell.log('warn', 'a pattern of the allowed images matches nothing', { pattern, reason });
          }
        }
        if (held && (port === undefined || port === held.port)) return held.port;
        if (held) await close(held.offers);
        held = undefined;
        return open(port ?? 0);
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

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

async function close(offers: readonly Offer[]): Promise<void> {
  await Promise.all(offers.map((offer) => offer.close()));
}
