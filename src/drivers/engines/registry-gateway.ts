import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { canonicalRegistry, HUB, isLoopback, isRegistryName } from '../../allowed-images/registry-name.ts';
import { hasSecretCookie } from './gateway-secret.ts';
import { passOn } from './pass-on.ts';
import type { GuardParts } from './pull-guard.ts';
import { denyRegistry } from './registry-answer.ts';
import type { RegistryRequest } from './registry-request.ts';
import { registryRequest } from './registry-request.ts';

/**
 * The server that containerd's clients take for the mirror of every registry. They name the real one in `ns`; the request goes on
 * there when it is allowed, with the client's own credentials. Layers that a registry keeps elsewhere the client fetches there.
 */
export function registryGateway(parts: GuardParts): Server {
  return createServer((request, response) => {
    serve(request, response, parts).catch((error: Error) => denyRegistry(response, 502, error.message));
  });
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { policy, out, refused, secret }: GuardParts,
): Promise<void> {
  if (!hasSecretCookie(request.headers, secret)) {
    return denyRegistry(response, 403, 'this gateway is for clients that use the directory with its address');
  }
  const { url = '', method = 'GET' } = request;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const query = new URLSearchParams(url.slice(path.length));
  const [namespace = '', second] = query.getAll('ns');
  // A client that pushes does not say to which registry.
  if (!isRegistryName(namespace) || second !== undefined || !/^(?:GET|HEAD)$/.test(method)) {
    return denyRegistry(response, 400, 'this gateway is for pulls; to push, leave out --hosts-dir');
  }
  const registry = canonicalRegistry(namespace);
  const read = registryRequest(method, path);
  const asked: RegistryRequest = read.wants === 'unknown' ? { wants: 'unclear' } : read;
  const why = policy.refusal(registry, asked);
  if (why !== undefined) {
    refused(why);
    return denyRegistry(response, 403, why);
  }
  query.delete('ns');
  const origin = originOf(registry);
  const target = new URL(`${origin}${path}${query.size > 0 ? `?${query}` : ''}`);
  // An address such as 127.1 is another one for those who connect than for the list.
  if (target.origin !== origin) return denyRegistry(response, 400, `${registry} is not spelled as clients spell it`);
  const location = (value: string) => throughGateway(value, target, namespace);
  await passOn({ request, response, registry, asked, target, out, here: true, policy, location });
}

function originOf(registry: string): string {
  if (registry === HUB) return 'https://registry-1.docker.io';
  return `${isLoopback(registry) ? 'http' : 'https'}://${registry}`;
}

/** A path of the registry's interface comes back here; any other address, such as a store of layers, is reached directly. */
function throughGateway(value: string, from: URL, namespace: string): string {
  if (!URL.canParse(value, from.href)) return value;
  const to = new URL(value, from);
  if (to.host !== from.host || registryRequest('GET', to.pathname).wants === 'unknown') return to.href;
  to.searchParams.set('ns', namespace);
  return `${to.pathname}${to.search}`;
}
