import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Server } from 'node:net';
import { SerialQueue } from '../../os/serial-queue.ts';
import { PRODUCT } from '../../product.ts';
import type { Offer, Shell } from '../shell.ts';
import { type PullPolicy, pullPolicy } from './pull-policy.ts';
import { createRegistryDialer, type RegistryDialer } from './registry-dialer.ts';

/** Restricts an engine to a list of allowed images, for as long as this process runs. */
export interface PullGuard {
  /**
   * Serves with these patterns from now on; `gateway` is the one that the engine was started with, by default a new one. Idempotent while active.
   * Throws the errors of `Shell.offer`.
   */
  serve(patterns: readonly string[], gateway?: Gateway): Promise<Gateway>;
  release(): Promise<void>;
  /** Returns how often the engine has queried its plugin. An engine that responds without a query is not restricted. */
  queries(): number;
}

/** The inputs of a server's decisions, and its callbacks. */
export interface GuardParts {
  policy: PullPolicy;
  dialer: RegistryDialer;
  /** The secret that clients of the gateway present. */
  secret: string;
  /** The authority whose certificates the gateway presents in place of the registries. */
  authority?: Authority;
  /** Called for each denied request. */
  onDenied: (why: string) => void;
  /** Called for each query to the plugin. */
  onQuery: () => void;
}

/** dockerd and busy clients need some dozens. Without a limit any local program could exhaust the service's file descriptors. */
const MAX_CONNECTIONS = 512;

/** The parts of a plugin's server. */
export type PluginParts = Omit<GuardParts, 'dialer' | 'secret' | 'authority'>;

/** The servers for an engine. */
export interface GuardServers {
  /** Listens on a loopback port. */
  gateway: (parts: GuardParts) => Server;
  /** Creates the authority with which a new gateway sees inside TLS connections. */
  authority?: () => Promise<Authority>;
  /** Listens on a socket; only for an engine that queries a plugin. */
  plugin?: { make: (parts: PluginParts) => Server; socket: string };
}

export function pullGuard(shell: Shell, { gateway, authority, plugin }: GuardServers): PullGuard {
  const policy = pullPolicy();
  let queries = 0;
  const parts: Omit<GuardParts, 'secret' | 'authority'> = {
    policy,
    dialer: createRegistryDialer(shell.environment),
    onDenied: (why) => shell.log('info', 'an image was denied', { why }),
    onQuery: () => {
      queries += 1;
    },
  };
  let active: { offers: Offer[]; gateway: Gateway } | undefined;
  // Observations and steps may overlap, and must not open the same socket twice.
  const queue = new SerialQueue();

  async function open({ port, ...secrets }: Gateway): Promise<Gateway> {
    const offers: Offer[] = [];
    try {
      const server = gateway({ ...parts, ...secrets });
      server.maxConnections = MAX_CONNECTIONS;
      const first = await shell.offer(server, { port });
      offers.push(first);
      if (plugin) offers.push(await shell.offer(plugin.make(parts), { socket: plugin.socket }));
      active = { offers, gateway: { port: first.port, ...secrets } };
      return active.gateway;
    } catch (error) {
      await close(offers);
      throw error;
    }
  }

  return {
    serve: (patterns, requested) =>
      queue.run(async () => {
        if (!sameTexts(patterns, policy.list().patterns)) {
          policy.set(patterns);
          for (const { pattern, reason } of policy.list().unusable) {
            shell.log('warn', 'a pattern of the allowed images matches nothing', { pattern, reason });
          }
        }
        if (active && (requested === undefined || sameGateway(requested, active.gateway))) return active.gateway;
        if (active) await close(active.offers);
        active = undefined;
        return open(
          requested ?? { port: 0, secret: newSecret(), ...(authority ? { authority: await authority() } : {}) },
        );
      }),
    release: () =>
      queue.run(async () => {
        const { offers = [] } = active ?? {};
        active = undefined;
        await close(offers);
      }),
    queries: () => queries,
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

/** The port of the registry gateway on the machine's 127.0.0.1, and the secret that authenticates its clients. */
export interface Gateway {
  port: number;
  /** Letters, digits, `-` and `_`. Stored only where root alone can read it. */
  secret: string;
  /** Stored where root alone can read it. */
  authority?: Authority;
}

/** A private certificate authority that one engine trusts. Both PEM; the key is PKCS #8. */
export interface Authority {
  certificate: string;
  key: string;
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns the gateway's proxy URL for programs. */
export function proxyAddress({ port, secret }: Gateway): string {
  return `http://${PRODUCT.name}:${secret}@127.0.0.1:${port}`;
}

/** True if a proxy request carries that secret. */
export function hasProxySecret(headers: IncomingHttpHeaders, secret: string): boolean {
  const login = Buffer.from(`${PRODUCT.name}:${secret}`).toString('base64');
  return same(headers['proxy-authorization'], `Basic ${login}`);
}

/**
 * Returns the cookie that clients of a mirror send. Clients drop cookies and passwords when a registry redirects them to its layer storage; any other
 * header, and the address, would leak there.
 */
export function secretCookie(secret: string): string {
  return `${PRODUCT.name}-gateway=${secret}`;
}

export function hasSecretCookie(headers: IncomingHttpHeaders, secret: string): boolean {
  return same(headers.cookie, secretCookie(secret));
}

/** Compares in constant time. */
function same(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given ?? ''), digest(expected));
}
