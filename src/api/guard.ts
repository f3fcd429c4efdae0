import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { TEXTS } from './wire-texts.ts';

export interface GuardOptions {
  user: string;
  password: string;
  /** Further names that the Host header may hold. */
  allowHosts: readonly string[];
}

/**
 * Checks a request before anything else looks at it: the Host header (a page of a foreign site may have its name resolve to
 * this machine), the Origin (a browser sends it along), then the credentials, which few routes do without.
 * @returns the refusal, or nothing when the request may go on.
 */
export type Guard = (request: FastifyRequest) => RdError | undefined;

export function createGuard({ user, password, allowHosts }: GuardOptions): Guard {
  const expectedUser = Buffer.from(user);
  const expectedPassword = Buffer.from(password);
  const expectedHeader = Buffer.from(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`);
  const names = new Set(['localhost', ...allowHosts.map((name) => name.toLowerCase())]);
  // Clients send the same Host every time; remembering the last good one spares the parsing.
  let lastGoodHost: string | undefined;

  function hostAllowed(host: string | undefined): boolean {
    if (host === undefined) return false;
    if (host === lastGoodHost) return true;
    const name = hostName(host);
    if (name === undefined || !(isIP(name) || names.has(name))) return false;
    lastGoodHost = host;
    return true;
  }

  // Reused for every request, so that a comparison leaves nothing behind to collect. One byte more shows what is too long.
  const scratch = Buffer.alloc(expectedHeader.length + 1);

  function isExpectedHeader(header: string): boolean {
    return (
      scratch.write(header) === expectedHeader.length &&
      timingSafeEqual(scratch.subarray(0, expectedHeader.length), expectedHeader)
    );
  }

  function authorised(header: string | undefined): boolean {
    if (header === undefined) return false;
    if (isExpectedHeader(header)) return true;
    const encoded = /^basic +(.+)$/i.exec(header.trim())?.[1];
    if (encoded === undefined) return false;
    const decoded = Buffer.from(encoded, 'base64');
    const colon = decoded.indexOf(':');
    if (colon < 0) return false;
    const userMatches = sameBytes(decoded.subarray(0, colon), expectedUser);
    const passwordMatches = sameBytes(decoded.subarray(colon + 1), expectedPassword);
    return userMatches && passwordMatches;
  }

  return (request) => {
    const { host, origin, authorization } = request.headers;
    if (!hostAllowed(host)) {
      return new RdError('ERR_FORBIDDEN', `requests for the host ${JSON.stringify(host ?? '')} are not accepted here`, {
        advice: 'Use 127.0.0.1 or localhost, or start the service with --allow-host NAME.',
      });
    }
    if (origin !== undefined && origin.toLowerCase() !== `http://${host?.toLowerCase()}`) {
      return new RdError('ERR_FORBIDDEN', `requests from pages of ${JSON.stringify(origin)} are not accepted here`);
    }
    if (authorised(authorization) || request.routeOptions.config?.doc?.open) return undefined;
    return new RdError('ERR_UNAUTHORIZED', TEXTS.unauthorized);
  };
}

/** Constant in time for equal lengths; the length of a secret is no secret here. */
function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** `127.0.0.1:6107` → `127.0.0.1`, `[::1]:6107` → `::1`; nothing for what is no host at all. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@[\]]+))(?::\d{1,5})?$/.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, '');
}
