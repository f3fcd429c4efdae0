import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { TEXTS } from './wire-texts.ts';

export interface GuardOptions {
  user: string;
  password: string;
  /** Additional names that the Host header may have. */
  allowHosts: readonly string[];
}

/**
 * Checks a request before anything else reads it: the Host header, because a foreign page can have its name resolve to
 * this machine; the Origin, which browsers send; then the credentials, which all but open routes require.
 * @returns the refusal, or undefined when the request is allowed.
 */
export type Guard = (request: FastifyRequest) => RdError | undefined;

export function createGuard({ user, password, allowHosts }: GuardOptions): Guard {
  const expectedUser = Buffer.from(user);
  const expectedPassword = Buffer.from(password);
  const names = new Set(['localhost', ...allowHosts.map((name) => name.toLowerCase())]);

  function isAllowedHost(host: string | undefined): boolean {
    const name = host === undefined ? undefined : hostName(host);
    return name !== undefined && (isIP(name) !== 0 || names.has(name));
  }

  function isAuthorized(header: string | undefined): boolean {
    const encoded = /^basic +(.+)$/i.exec(header?.trim() ?? '')?.[1];
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
    if (!isAllowedHost(host)) {
      return new RdError('ERR_FORBIDDEN', `requests for the host ${JSON.stringify(host ?? '')} are not accepted here`, {
        advice: 'Use 127.0.0.1 or localhost, or start the service with --allow-host NAME.',
      });
    }
    if (origin !== undefined && origin.toLowerCase() !== `http://${host?.toLowerCase()}`) {
      return new RdError('ERR_FORBIDDEN', `requests from pages of ${JSON.stringify(origin)} are not accepted here`);
    }
    if (isAuthorized(authorization) || request.routeOptions.config?.doc?.open) return undefined;
    return new RdError('ERR_UNAUTHORIZED', TEXTS.unauthorized);
  };
}

/** Constant in time for equal lengths; the length is not secret. */
function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** `127.0.0.1:6107` → `127.0.0.1`, `[::1]:6107` → `::1`; undefined for an invalid host. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@[\]]+))(?::\d{1,5})?$/.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, '');
}
