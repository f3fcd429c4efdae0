import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as sendRequest } from 'node:http';
import { digestsOfIndex } from './learned-digests.ts';
import type { PullPolicy } from './pull-policy.ts';
import { forwardedHeaders, relay } from './registry-answer.ts';
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
  policy: PullPolicy;
  location?: (value: string) => string;
}

/** Sends a request that is allowed to the registry and its answer back, and remembers what the answer leads to. */
export async function passOn(passage: Passage): Promise<void> {
  const { request, response, registry, asked, target, out, policy, location } = passage;
  const tls = target.protocol === 'https:';
  const host = target.hostname.replace(/^\[|\]$/g, '');
  const socket = await out.connect({ host, port: Number(target.port) || (tls ? 443 : 80), tls: tls ? 'ours' : 'none' });
  const headers = { ...forwardedHeaders(request.headers), host: target.host };
  const manifest = asked.wants === 'manifest';
  const call = sendRequest({
    method: request.method,
    path: `${target.pathname}${target.search}`,
    // A manifest is read here, so it must come as it is.
    headers: manifest ? { ...headers, 'accept-encoding': 'identity' } : headers,
    createConnection: () => socket,
  });
  request.pipe(call);
  const list = policy.list();
  await relay(call, response, {
    ...(location ? { location } : {}),
    ...(manifest
      ? {
          read(body, { 'docker-content-digest': digest }) {
            // An answer to a question that was allowed by patterns which are no longer in force teaches nothing.
            if (policy.list() !== list) return;
            const found = [...(typeof digest === 'string' ? [digest] : []), ...digestsOfIndex(body)];
            policy.learn(registry, asked.repository, found);
          },
        }
      : {}),
  });
}
