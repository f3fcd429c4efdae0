import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { explainRegistry } from '../../allowed-images/allow-list.ts';
import { RdError } from '../../errors.ts';
import { canonicalRegistry, isRegistryName, registryOrigin } from '../../settings/image-reference.ts';
import { type GuardParts, hasProxySecret, hasSecretCookie } from './pull-guard.ts';
import { denyRegistry, forwardRequest, PROXY_CHALLENGE } from './registry-forward.ts';
import { type RegistryRequest, registryRequest } from './registry-request.ts';

const UNKNOWN = 'this proxy is for the dockerd that was given its password';

/** An encrypted connection of dockerd that ends here. */
interface Tunnel {
  /** As in the address of a request: `host`, or `host:port` if the port is not 443. */
  authority: string;
  /** Connected before dockerd was answered; used by its first request. */
  open: Socket | undefined;
}

/**
 * Creates the proxy that is the only way out for a dockerd with a list of allowed images. It ends dockerd's TLS with certificates of an authority
 * that only dockerd trusts, so it sees and checks every request, and makes encrypted connections of its own, verified as usual. dockerd bypasses
 * proxies for its own machine, so only an explicit pattern leads there.
 */
export function outboundProxy(parts: GuardParts): Server {
  const { authority, secret } = parts;
  if (!authority) throw new RdError('ERR_DRIVER_FAILED', 'the proxy needs a certificate authority');
  // Most services never need these libraries.
  const certificates = import('./gateway-authority.ts').then((own) =>
    own.hostCertificates(authority, () => Date.now()),
  );
  const server = createServer((request, response) => {
    plain(request, response, parts).catch((error: Error) => denyRegistry(response, 502, error.message));
  });
  const tunnels = new WeakMap<object, Tunnel>();
  const inside = createServer((request, response) => {
    answerEncrypted(request, response, tunnels.get(request.socket), parts).catch((error: Error) =>
      denyRegistry(response, 502, error.message),
    );
  });
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on('error', () => client.destroy());
    if (!hasProxySecret(request.headers, secret)) return refuse(client, 407, UNKNOWN);
    const accept = async (tunnel: Tunnel, host: string) => {
      const secureContext = (await certificates)(host);
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) client.unshift(head);
      const secure = new TLSSocket(client, {
        isServer: true,
        secureContext,
        ALPNProtocols: ['http/1.1'],
      });
      secure.on('error', () => client.destroy());
      tunnels.set(secure, tunnel);
      inside.emit('connection', secure);
    };
    connectTunnel(request.url ?? '', client, accept, parts).catch((error: Error) => refuse(client, 502, error.message));
  });
  return server;
}

/** Refuses a tunnel. Clients display the reason phrase, and may never close their half of the connection. */
function refuse(client: Duplex, status: 400 | 403 | 407 | 502, reason: string): void {
  const lines = [
    `HTTP/1.1 ${status} ${reason.replace(/[^ -~]+/g, ' ')}`,
    ...(status === 407 ? [`Proxy-Authenticate: ${PROXY_CHALLENGE}`] : []),
    'Connection: close',
    'Content-Length: 0',
  ];
  client.end(`${lines.join('\r\n')}\r\n\r\n`, () => client.destroy());
}

async function connectTunnel(
  authority: string,
  client: Duplex,
  accept: (tunnel: Tunnel, host: string) => Promise<void>,
  { policy, dialer, onDenied }: GuardParts,
): Promise<void> {
  const target = splitAuthority(authority);
  if (!target) return refuse(client, 400, 'this is not a host and port');
  const registry = canonicalRegistry(authority);
  const reaches = () => policy.reaches(registry);
  if (!reaches()) {
    const why = explainRegistry(registry, policy.list().patterns);
    onDenied(why);
    return refuse(client, 403, why);
  }
  // dockerd reuses connections for later requests, which a new list may deny.
  client.once(
    'close',
    policy.onChange(() => reaches() || client.destroy()),
  );
  // Connect before the answer, because dockerd shows its reason phrase.
  const open = await dialer.connect({ ...target, tls: true, mayBeLocal: policy.isExplicit(registry) });
  if (client.destroyed) return void open.destroy();
  client.once('close', () => open.destroy());
  open.on('error', () => open.destroy());
  await accept({ authority: authority.replace(/:443$/, ''), open }, target.host);
}

/** Answers a request inside a tunnel. */
async function answerEncrypted(
  request: IncomingMessage,
  response: ServerResponse,
  tunnel: Tunnel | undefined,
  parts: GuardParts,
): Promise<void> {
  const target = tunnel && wholeAddress('https', `https://${tunnel.authority}${request.url ?? ''}`);
  if (!target) return denyRegistry(response, 400, 'the URL is not in canonical form');
  const open = tunnel.open?.destroyed ? undefined : tunnel.open;
  tunnel.open = undefined;
  const own = canonicalRegistry(target.host);
  const apiRequest = registryRequest(request.method ?? 'GET', target.pathname);
  const origin = parts.policy.redirectOrigin(target) ?? { registry: own, apiRequest };
  const mayBeLocal = parts.policy.isExplicit(own);
  await forwardRequest({ request, response, ...origin, target, mayBeLocal, open }, parts);
}

function splitAuthority(authority: string): { host: string; port: number } | undefined {
  const [, host = '', digits = ''] = /^(.*):([1-9]\d{0,4})$/.exec(authority) ?? [];
  const port = Number(digits);
  return isRegistryName(authority) && port > 0 && port <= 65_535
    ? { host: host.replace(/^\[|\]$/g, ''), port }
    : undefined;
}

/** Answers a plaintext request with an absolute URL. */
async function plain(request: IncomingMessage, response: ServerResponse, parts: GuardParts): Promise<void> {
  if (!hasProxySecret(request.headers, parts.secret)) return denyRegistry(response, 407, UNKNOWN);
  const target = wholeAddress('http', request.url ?? '');
  if (!target) return denyRegistry(response, 400, 'this proxy needs the absolute URL of a request');
  const registry = canonicalRegistry(target.host);
  const apiRequest = registryRequest(request.method ?? 'GET', target.pathname);
  const mayBeLocal = parts.policy.isExplicit(registry);
  await forwardRequest({ request, response, registry, apiRequest, target, mayBeLocal }, parts);
}

/** Parses an address. Undefined for one that parsing changes: the next parser could change it differently. */
function wholeAddress(scheme: 'http' | 'https', address: string): URL | undefined {
  const [, written, host = '', path = '/'] = /^([a-z]+):\/\/([^/?#]+)(\/[^?#]*)?(?:\?[^#]*)?$/.exec(address) ?? [];
  if (written !== scheme || !isRegistryName(host) || !URL.canParse(address)) return undefined;
  const target = new URL(address);
  const named = host.toLowerCase().replace(scheme === 'http' ? /:80$/ : /:443$/, '');
  return target.host === named && target.pathname === path ? target : undefined;
}

/**
 * Creates the server that containerd's clients use as the mirror of every registry. They name the real one in `ns`; an allowed request is forwarded
 * there, with the client's own credentials. Clients fetch redirected layers directly.
 */
export function registryGateway(parts: GuardParts): Server {
  return createServer((request, response) => {
    mirror(request, response, parts).catch((error: Error) => denyRegistry(response, 502, error.message));
  });
}

async function mirror(request: IncomingMessage, response: ServerResponse, parts: GuardParts): Promise<void> {
  if (!hasSecretCookie(request.headers, parts.secret)) {
    return denyRegistry(response, 403, 'this gateway is for clients that use its --hosts-dir');
  }
  const { url = '', method = 'GET' } = request;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const query = new URLSearchParams(url.slice(path.length));
  const [namespace = '', second] = query.getAll('ns');
  // A push does not name its registry.
  if (!isRegistryName(namespace) || second !== undefined || !/^(?:GET|HEAD)$/.test(method)) {
    return denyRegistry(response, 400, 'this gateway is for pulls; to push, leave out --hosts-dir');
  }
  const registry = canonicalRegistry(namespace);
  const read = registryRequest(method, path);
  const apiRequest: RegistryRequest = read.wants === 'unknown' ? { wants: 'unclear' } : read;
  query.delete('ns');
  const origin = registryOrigin(registry);
  const target = new URL(`${origin}${path}${query.size > 0 ? `?${query}` : ''}`);
  // An address such as 127.1 means something else when connecting than in the list.
  if (target.origin !== origin) return denyRegistry(response, 400, `${registry} is not in canonical form`);
  const location = (value: string) => throughGateway(value, target, namespace);
  await forwardRequest({ request, response, registry, apiRequest, target, mayBeLocal: true, location }, parts);
}

/** Rewrites a redirect: an API path leads back here; any other address, such as layer storage, is reached directly. */
function throughGateway(value: string, from: URL, namespace: string): string {
  if (!URL.canParse(value, from.href)) return value;
  const to = new URL(value, from);
  if (to.host !== from.host || registryRequest('GET', to.pathname).wants === 'unknown') return to.href;
  to.searchParams.set('ns', namespace);
  return `${to.pathname}${to.search}`;
}
