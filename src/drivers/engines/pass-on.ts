import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as sendRequest } from 'node:http';
import { isDigest } from '../../settings/image-reference.ts';
import { digestsOfIndex } from './learned-digests.ts';
import type { PullPolicy } from './pull-policy.ts';
import { denyRegistry, relay, requestHeaders } from './registry-answer.ts';
import type { RegistryRequest } from './registry-request.ts';
import type { RegistryDialer } from './way-out.ts';

export interface ForwardedRequest {
  request: IncomingMessage;
  response: ServerResponse;
  /** Canonical. */
  registry: string;
  asked: RegistryRequest;
  /** The target; the protocol decides about TLS. */
  target: URL;
  out: RegistryDialer;
  /** Whether it may lead to this machine. */
  here: boolean;
  policy: PullPolicy;
  location?: (value: string) => string;
}

/** Forwards an allowed request to the registry and its response back, and remembers the digests in it. */
export async function forwardRequest(passage: ForwardedRequest): Promise<void> {
  const { request, response, registry, asked, target, out, here, policy, location } = passage;
  const { method = 'GET', headers: own } = request;
  const chunked = own['transfer-encoding'] !== undefined;
  const hasBody = chunked || Number(own['content-length'] ?? 0) > 0;
  if (hasBody && (method === 'GET' || method === 'HEAD')) {
    return denyRegistry(response, 400, 'a request that only reads has no body');
  }
  const tls = target.protocol === 'https:';
  const host = target.hostname.replace(/^\[|\]$/g, '');
  const port = Number(target.port) || (tls ? 443 : 80);
  const socket = await out.connect({ host, port, tls: tls ? 'ours' : 'none', here });
  // The client may have disconnected meanwhile, and emits that only once.
  if (response.destroyed) return void socket.destroy();
  const manifest = asked.wants === 'manifest';
  const { range, ...kept } = requestHeaders(own);
  const headers = {
    ...kept,
    // A manifest is parsed here, so it must come whole and unencoded.
    ...(manifest ? { 'accept-encoding': 'identity' } : range === undefined ? {} : { range }),
    host: target.host,
    // Without it Node sends a body of unknown length without framing for some methods.
    ...(chunked ? { 'transfer-encoding': 'chunked' } : {}),
  };
  const call = sendRequest({
    method,
    path: `${target.pathname}${target.search}`,
    headers,
    createConnection: () => socket,
  });
  if (hasBody) request.pipe(call);
  else call.end();
  const list = policy.list();
  await relay(call, response, {
    ...(location ? { location } : {}),
    ...(manifest
      ? {
          read(body, { 'docker-content-digest': digest }) {
            // A response to a request allowed by replaced patterns must not be remembered.
            if (policy.list() !== list) return;
            const own = typeof digest === 'string' && isDigest(digest) ? [digest] : [];
            const found = [...own, ...digestsOfIndex(body)];
            policy.learn(registry, asked.repository, found);
          },
        }
      : {}),
  });
}
