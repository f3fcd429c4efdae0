import type { ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import type { LimitedLog } from '../os/limited-log.ts';
import { PRODUCT } from '../product.ts';
import type { TokenCheck, TokenScope } from '../state/tokens.ts';
import { basicCredentials } from './basic-credentials.ts';
import { describeRequest, pathOf, routeOf } from './error-handler.ts';
import { TEXTS } from './wire-texts.ts';

/** Whose token a request was sent with. */
export interface TokenHolder {
  name: string;
  /** False once the token is revoked or has expired. */
  isValid(): Promise<boolean>;
}

/** Whether a request may proceed. `token`: whose it is; absent for full credentials. `challenge`: the header `WWW-Authenticate`. */
export type Access = { refusal?: undefined; token?: TokenHolder } | { refusal: RdError; challenge?: string };

/** Decides about a request with a token. */
export type TokenGuard = (request: FastifyRequest, presented: string) => Promise<Access>;

/** The user of Basic authentication whose password is a token, for clients that know nothing else. */
const TOKEN_USER = 'token';

/** As in `src/state/tokens.ts`. */
const PREFIX = `${PRODUCT.name}_`;
/** Each scope with those that it includes. */
const INCLUDES: Readonly<Record<TokenScope, readonly TokenScope[]>> = {
  read: ['read'],
  plan: ['read', 'plan'],
  write: ['read', 'plan', 'write'],
};

const REALM = 'Bearer realm="rdctl"';
const CREATE = 'Create a token with: rdctl token create --scope read|plan|write --name NAME';

/**
 * The token of an `Authorization` header (RFC 6750, or Basic with the user `token`). Undefined for credentials of other kinds, which are
 * refused as by the compatible interface.
 */
export function presentedToken(header: string | undefined): string | undefined {
  const bearer = /^bearer +(.*)$/i.exec(header?.trim() ?? '')?.[1];
  const basic = bearer === undefined ? basicCredentials(header) : undefined;
  const presented = basic?.user.toString() === TOKEN_USER ? basic.password.toString() : bearer;
  return presented?.startsWith(PREFIX) ? presented : undefined;
}

/** The valid tokens, and the log of refused ones. */
export interface TokenPort {
  /** The tokens of this home, as they are on the disk at this moment. */
  tokens: { check(presented: string): Promise<TokenCheck> };
  /** The log of the service, for lines about requests that are not carried out. */
  refusals: LimitedLog;
}

/** Accepts a valid token on routes of its scope. */
export function createTokenGuard({ tokens, refusals }: TokenPort): TokenGuard {
  function logRefused(kind: string, request: FastifyRequest, values: { reason: string; token?: string }): void {
    refusals.write(`token ${kind}`, 'warn', 'a token was refused', { ...describeRequest(request), ...values });
  }
  return async (request, presented) => {
    const check = await tokens.check(presented);
    if (check.kind !== 'valid') {
      // Anyone can present tokens, on any path and with any name.
      logRefused(check.kind, request, { reason: check.kind, ...('name' in check ? { token: check.name } : {}) });
      return { refusal: invalidToken(check), challenge: `${REALM}, error="invalid_token"` };
    }
    const required = request.routeOptions.config?.doc?.scope ?? 'closed';
    if (request.is404 || INCLUDES[check.scope].some((scope) => scope === required)) {
      return { token: { name: check.name, isValid: async () => (await tokens.check(presented)).kind === 'valid' } };
    }
    logRefused(`scope ${check.name} ${routeOf(request)}`, request, { reason: 'scope', token: check.name });
    const challenge = `${REALM}, error="insufficient_scope"${required === 'closed' ? '' : `, scope="${required}"`}`;
    return { refusal: missingScope(check, required, `${request.method} ${pathOf(request)}`), challenge };
  };
}

/** Begins with the text that clients of the compatible interface match. */
function invalidToken(check: Exclude<TokenCheck, { kind: 'valid' }>): RdError {
  const refusal = (reason: string, advice: string) =>
    new RdError('ERR_UNAUTHORIZED', `${TEXTS.unauthorized}: ${reason}`, { advice });
  switch (check.kind) {
    case 'malformed':
      return refusal('this is only a part of a token, or has other characters', CREATE);
    case 'unreadable':
      return refusal('the service cannot read its tokens', 'See the service log for the cause.');
    case 'expired':
      return refusal(`the token "${check.name}" expired at ${check.expiresAt}`, CREATE);
    case 'unknown':
      return refusal('the token is unknown, or was revoked', CREATE);
  }
}

function missingScope(
  { name, scope }: { name: string; scope: TokenScope },
  required: TokenScope | 'closed',
  what: string,
): RdError {
  if (required === 'closed') {
    return new RdError('ERR_FORBIDDEN', `${what} is not open to tokens, and the token "${name}" was used`, {
      advice: 'Use the user and password of the connection file, or rdctl on that computer.',
    });
  }
  return new RdError('ERR_FORBIDDEN', `${what} requires the scope ${required}; the token "${name}" has ${scope}`, {
    advice: `Create a token with that scope: rdctl token create --scope ${required} --name NAME`,
  });
}

/** Milliseconds between two looks at the tokens of open replies. */
const INTERVAL = 1_000;

/** Ends replies, such as event streams, whose token is revoked or expires while they are open. */
export interface TokenReplies {
  add(token: TokenHolder, reply: ServerResponse): void;
  /** Ends replies of invalid tokens; those that it has ended before and whose reader takes nothing are cut off. */
  check(): Promise<void>;
}

/** Looks every second while such a reply is open. */
export function createTokenReplies(interval = INTERVAL): TokenReplies {
  const open = new Map<ServerResponse, TokenHolder>();
  let timer: NodeJS.Timeout | undefined;

  function remove(reply: ServerResponse): void {
    open.delete(reply);
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  async function check(): Promise<void> {
    // Only what has begun to stream: the result of a request that was accepted belongs to its client.
    const streaming = [...open].filter(([reply]) => reply.headersSent);
    for (const [reply, token] of streaming) {
      if (await token.isValid()) continue;
      if (reply.writableEnded) reply.destroy();
      else reply.end();
    }
  }

  return {
    add(token, reply) {
      open.set(reply, token);
      reply.once('close', () => remove(reply));
      // A stream may write once more before it learns that it was ended.
      reply.on('error', () => undefined);
      timer ??= setInterval(() => void check(), interval).unref();
    },
    check,
  };
}
