import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
  request as sendRequest,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { bytesOf } from '../../os/stream-bytes.ts';
import { PRODUCT } from '../../product.ts';
import { isDigest } from '../../settings/image-reference.ts';
import type { GuardParts } from './pull-guard.ts';
import { digestsOfIndex } from './pull-policy.ts';
import type { RegistryRequest } from './registry-request.ts';

/** An index or manifest is small; the OCI distribution specification requires servers to accept no more than 4 MiB. */
const MAX_MANIFEST = 4 * 1024 * 1024;

interface ForwardedRequest {
  request: IncomingMessage;
  response: ServerResponse;
  /** Canonical. */
  registry: string;
  apiRequest: RegistryRequest;
  /** The target; its protocol selects TLS. */
  target: URL;
  /** True if the target may lead to this machine. */
  mayBeLocal: boolean;
  /** Rewrites a `Location` for the client. */
  location?: (value: string) => string;
  /** An open connection to the target; by default a new one. */
  open?: Socket | undefined;
}

/** Forwards an allowed request to the registry and its response back, and remembers the digests in it; denies any other. */
export async function forwardRequest(
  { request, response, registry, apiRequest, target, mayBeLocal, location, open }: ForwardedRequest,
  { policy, dialer, onDenied }: GuardParts,
): Promise<void> {
  const why = policy.refusal(registry, apiRequest);
  if (why !== undefined) {
    onDenied(why);
    return denyRegistry(response, 403, why);
  }
  const { method = 'GET', headers: own } = request;
  const chunked = own['transfer-encoding'] !== undefined;
  const hasBody = chunked || Number(own['content-length'] ?? 0) > 0;
  if (hasBody && (method === 'GET' || method === 'HEAD')) {
    return denyRegistry(response, 400, 'a GET or HEAD request must not have a body');
  }
  const tls = target.protocol === 'https:';
  const host = target.hostname.replace(/^\[|\]$/g, '');
  const port = Number(target.port) || (tls ? 443 : 80);
  const socket = open ?? (await dialer.connect({ host, port, tls, mayBeLocal }));
  // The client may have disconnected meanwhile, and emits that only once.
  if (response.destroyed) return void socket.destroy();
  const isManifest = apiRequest.wants === 'manifest';
  const { range, ...kept } = requestHeaders(own);
  const headers = {
    ...kept,
    // A manifest is parsed here, so it must come whole and unencoded.
    ...(isManifest ? { 'accept-encoding': 'identity' } : range === undefined ? {} : { range }),
    host: target.host,
    // Without this header Node sends a body of unknown length without framing for some methods.
    ...(chunked ? { 'transfer-encoding': 'chunked' } : {}),
  };
  const path = `${target.pathname}${target.search}`;
  const call = sendRequest({ method, path, headers, createConnection: () => socket });
  if (hasBody) request.pipe(call);
  else call.end();
  const list = policy.list();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    response.once('close', () => call.destroy());
    call.on('error', reject);
    call.on('response', resolve);
  });
  // A response to a request allowed by replaced patterns must not be remembered.
  const isCurrent = () => policy.list() === list;
  const { statusCode: status = 502 } = answer;
  const answerHeaders: OutgoingHttpHeaders = withoutHopByHop(answer.headers);
  if (location && answer.headers.location !== undefined) answerHeaders.location = location(answer.headers.location);
  const moved = status >= 300 && status < 400 && answer.headers.location;
  const holds = apiRequest.wants === 'manifest' || apiRequest.wants === 'content';
  if (moved && holds && isCurrent() && URL.canParse(moved, target.href)) {
    policy.learnRedirect(new URL(moved, target), { registry, apiRequest });
  }
  if (apiRequest.wants !== 'manifest' || status !== 200) {
    response.writeHead(status, answerHeaders);
    return pipeline(answer, response);
  }
  const body = await bytesOf(answer, MAX_MANIFEST);
  if (isCurrent()) {
    const digest = answer.headers['docker-content-digest'];
    const named = typeof digest === 'string' && isDigest(digest) ? [digest] : [];
    policy.learn(registry, apiRequest.repository, [...named, ...digestsOfIndex(body.toString('utf8'))]);
  }
  response.writeHead(status, answerHeaders);
  response.end(body);
}

/**
 * Refuses a request in the error format of the registry API. Some clients display the message in its body, others the reason phrase, which is all
 * that a response to `HEAD` has.
 */
export function denyRegistry(response: ServerResponse, status: keyof typeof REFUSALS, message: string): void {
  const [code, name] = REFUSALS[status];
  if (response.headersSent) return void response.destroy();
  const phrase = `${name}: ${message.replace(/[^ -~]+/g, ' ')}`;
  const headers = {
    'content-type': 'application/json',
    'docker-distribution-api-version': 'registry/2.0',
    ...(status === 407 ? { 'proxy-authenticate': PROXY_CHALLENGE } : {}),
  };
  response.writeHead(status, phrase, headers);
  response.end(JSON.stringify({ errors: [{ code, message }] }));
}

export const PROXY_CHALLENGE = `Basic realm="${PRODUCT.name}"`;

const REFUSALS = {
  400: ['UNSUPPORTED', 'Bad Request'],
  403: ['DENIED', 'Forbidden'],
  407: ['UNAUTHORIZED', 'Proxy Authentication Required'],
  502: ['UNAVAILABLE', 'Bad Gateway'],
} as const;

const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** Headers of registry clients and build downloads. Some servers take the path or the method from other headers. */
const REQUEST_HEADERS =
  /^(?:accept|accept-.*|authorization|cache-control|content-.*|docker-.*|git-.*|if-.*|oci-.*|pragma|range|referer|user-agent|x-meta-.*)$/;

function requestHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => REQUEST_HEADERS.test(name)));
}

function withoutHopByHop(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name)));
}
