import { timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import { basicCredentials } from './basic-credentials.ts';
import type { Access } from './token-guard.ts';
import { presentedToken, type TokenGuard } from './token-guard.ts';
import { TEXTS } from './wire-texts.ts';

export interface GuardOptions {
  user: string;
  password: string;
  /** Additional names that the Host header may have. */
  allowHosts: readonly string[];
  tokens: TokenGuard;
}

/**
 * Checks a request before anything else reads it: the Host header, because a foreign page can have its name resolve to this machine; the Origin and
 * the fetch metadata, which browsers send, the latter even for images, scripts and links, which have no Origin; then the credentials, which all but
 * open routes require.
 */
export type Guard = (request: FastifyRequest) => Access | Promise<Access>;

/** `Sec-Fetch-Site` of a page elsewhere; another port of this computer is the same site. */
const FOREIGN_SITES: ReadonlySet<string> = new Set(['cross-site', 'same-site']);

export function createGuard({ user, password, allowHosts, tokens }: GuardOptions): Guard {
  const expectedUser = Buffer.from(user);
  const expectedPassword = Buffer.from(password);
  const names = new Set(['localhost', ...allowHosts.map((name) => name.toLowerCase())]);

  function isAllowedHost(host: string | undefined): boolean {
    const name = host === undefined ? undefined : hostName(host);
    return name !== undefined && (isIP(name) !== 0 || names.has(name));
  }

  function isAuthorized(header: string | undefined): boolean {
    const given = basicCredentials(header);
    if (!given) return false;
    const userMatches = sameBytes(given.user, expectedUser);
    const passwordMatches = sameBytes(given.password, expectedPassword);
    return userMatches && passwordMatches;
  }

  return (request) => {
    const { host, origin, authorization } = request.headers;
    if (!isAllowedHost(host)) {
      const message = `requests for the host ${JSON.stringify(host ?? '')} are not accepted here`;
      return {
        refusal: new RdError('ERR_FORBIDDEN', message, {
          advice: 'Use 127.0.0.1 or localhost, or start the service with --allow-host NAME.',
        }),
      };
    }
    if (origin !== undefined && origin.toLowerCase() !== `http://${host?.toLowerCase()}`) {
      return {
        refusal: new RdError('ERR_FORBIDDEN', `requests from pages of ${JSON.stringify(origin)} are not accepted here`),
      };
    }
    if (FOREIGN_SITES.has(String(request.headers['sec-fetch-site']).toLowerCase())) {
      return { refusal: new RdError('ERR_FORBIDDEN', 'requests from pages of other sites are not accepted here') };
    }
    if (isAuthorized(authorization) || request.routeOptions.config?.doc?.open) return {};
    const presented = presentedToken(authorization);
    if (presented !== undefined) return tokens(request, presented);
    return { refusal: new RdError('ERR_UNAUTHORIZED', TEXTS.unauthorized) };
  };
}

/** Compares in constant time for equal lengths; the length is not secret. */
function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** `127.0.0.1:6107` → `127.0.0.1`, `[::1]:6107` → `::1`; undefined for an invalid host. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@[\]]+))(?::\d{1,5})?$/.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, '');
}
