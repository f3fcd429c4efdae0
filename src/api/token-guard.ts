import type { ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RdError } from '../errors.ts';
import type { LimitedLog } from '../os/limited-log.ts';
import { PRODUCT } from '../product.ts';
import type { TokenCheck, TokenScope } from '../state/tokens.ts';
import { basicCredentials } from './basic-credentials.ts';
import { describeRequest, pathOf, routeOf } from './error-handler.ts';
import { TEXTS } from './wire-texts.ts';

/** The token that a request was sent with. */
export interface TokenHolder {
  name: string;
  /** False once the token is revoked or has expired. */
  isValid(): Promise<boolean>;
}

/** Whether a request may proceed. `token` is absent for full credentials; `challenge` is the header `WWW-Authenticate`. */
export type Access = { refusal?: undefined; token?: TokenHolder } | { refusal: RdError; challenge?: string };

/** Decides whether a request with the presented token may proceed. */
export type TokenGuard = (request: FastifyRequest, presented: string) => Promise<Access>;

/** The user name of Basic authentication whose password is a token, for clients without bearer tokens. */
const TOKEN_USER = 'token';

/** The prefix that `src/state/tokens.ts` gives every token. */
const PREFIX = `${PRODUCT.name}_`;
/** Each scope with the scopes that it includes. */
const INCLUDES: Readonly<Record<TokenScope, readonly TokenScope[]>> = {
  read: ['read'],
  plan: ['read', 'plan'],
  write: ['read', 'plan', 'write'],
};

const REALM = 'Bearer realm="rdctl"';
const CREATE = 'Create a token with: rdctl token create --scope read|plan|write --name NAME';

/**
 * Returns the token of an `Authorization` header (RFC 6750, or Basic with the user `token`); undefined for credentials of other kinds, which are
 * refused in the form of the compatible interface.
 */
export function presentedToken(header: string | undefined): string | undefined {
  const bearer = /^bearer +(.*)$/i.exec(header?.trim() ?? '')?.[1];
  const basic = bearer === undefined ? basicCredentials(header) : undefined;
  const presented = basic?.user.toString() === TOKEN_USER ? basic.password.toString() : bearer;
  return presented?.startsWith(PREFIX) ? presented : undefined;
}

/** The valid tokens and the log of refused ones. */
export interface TokenPort {
  /** Checks a token against the files of this home, which are read for every request. */
  tokens: { check(presented: string): Promise<TokenCheck> };
  /** Log for requests that are refused. */
  refusals: LimitedLog;
}

/** Creates a guard that accepts a valid token on the routes of its scope. */
export function createTokenGuard({ tokens, refusals }: TokenPort): TokenGuard {
  function logRefused(kind: string, request: FastifyRequest, values: { reason: string; token?: string }): void {
    refusals.write(`token ${kind}`, 'warn', 'a token was refused', { ...describeRequest(request), ...values });
  }
  return async (request, presented) => {
    const check = await tokens.check(presented);
    if (check.kind !== 'valid') {
      // Limited, because anyone can present tokens, on any path and with any name.
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

/** The error for an invalid token. It begins with the text that clients of the compatible interface match. */
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

/** Milliseconds between checks of the tokens of open replies. */
const INTERVAL = 1_000;

/** Ends replies, such as event streams, whose token is revoked or expires while they are open. */
export interface TokenReplies {
  add(token: TokenHolder, reply: ServerResponse): void;
  /** Ends the replies of invalid tokens. A reply that was ended before and whose reader takes nothing is cut off. */
  check(): Promise<void>;
}

/** Creates the watch over open replies, which checks every second while there are any. */
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
    // Only streams are ended: an accepted request keeps its result.
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
