import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as sendRequest } from 'node:http';
import { isDigest } from '../../allowed-images/reference.ts';
import { digestsOfIndex } from './learned-digests.ts';
import type { PullPolicy } from './pull-policy.ts';
import { denyRegistry, relay, requestHeaders } from './registry-answer.ts';
import type { RegistryRequest } from './registry-request.ts';
import type { WayOut } from './way-out.ts';

export interface Passage {
  request: IncomingMessage;
  response: ServerResponse;
  /** Canonical. */
  registry: string;
  asked: RegistryRequest;
  /** Where it goes; the protocol decides about TLS. */
  target: URL;
  out: WayOut;
  /** Whether it may lead to this machine. */
  here: boolean;
  policy: PullPolicy;
  location?: (value: string) => string;
}

/** Sends a request that is allowed to the registry and its answer back, and remembers what the answer leads to. */
export async function passOn(passage: Passage): Promise<void> {
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
  // Whoever asked may have left meanwhile, and says so only once.
  if (response.destroyed) return void socket.destroy();
  const manifest = asked.wants === 'manifest';
  const { range, ...kept } = requestHeaders(own);
  const headers = {
    ...kept,
    // A manifest is read here, so it must come whole and as it is.
    ...(manifest ? { 'accept-encoding': 'identity' } : range === undefined ? {} : { range }),
    host: target.host,
    // Without it Node sends a body of unknown length with no frame at all for some methods.
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
            // An answer to a question that was allowed by patterns which are no longer in force teaches nothing.
            if (policy.list() !== list) return;
            const own = typeof digest === 'string' && isDigest(digest) ? [digest] : [];
            const found = [...own, ...digestsOfIndex(body)];
            policy.learn(registry, asked.repository, found);
          },
        }
      : {}),
  });
}
