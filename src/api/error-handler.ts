import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERRORS, type ErrorCode, RdError, type SettingsFinding } from '../errors.ts';
import { indentedJson } from '../json.ts';
import type { LimitedLog } from '../os/limited-log.ts';
import { INVALID_ADVICE } from '../plan/requested.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from './wire-texts.ts';

/** The document of `schemas/error.json`: every error under `/v2`. */
export interface ErrorDocument {
  code: string;
  message: string;
  advice: string;
  details?: string[];
  findings?: SettingsFinding[];
}

/** Advice for errors without their own: under `/v1` every line is that of the compatible interface. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  ERR_UNAUTHORIZED: 'Authenticate with the user and password from the connection file of this service.',
  ERR_FORBIDDEN: 'Send the request from a program, or from a page of this service.',
  ERR_NOT_FOUND:
    'GET /v1 lists the endpoints of the compatible interface; GET /v2/openapi.json describes all endpoints.',
  ERR_BODY_INVALID: 'Send UTF-8 JSON in the form that docs/api.md describes for this endpoint.',
  ERR_BODY_TOO_LARGE: 'Send a smaller body; settings are only a few kilobytes.',
  ERR_SETTINGS_INVALID: INVALID_ADVICE,
  ERR_NOT_READY: 'Try again later.',
};
/** Seconds. */
const RETRY_AFTER = '1';
const SEE_LOG = 'See the service log for the cause.';
/** Characters of a path in the log: callers choose it. */
const LONGEST_PATH = 200;

/**
 * Handles all errors of the API: a sentence as text, or a document under `/v2`. A bug reveals no details. Being asked too much, too early or
 * too often is no failure of the service, so refusals are logged as such, without a stack.
 */
export function createErrorHandler(log: LimitedLog) {
  return function handleError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const error = expectedError(thrown);
    const { status } = error ? ERRORS[error.code] : ERRORS.ERR_INTERNAL;
    const path = pathOf(request);
    const values = { ...describeRequest(request), status };
    const kind = `${error?.code ?? 'unexpected'} ${routeOf(request)}`;
    if (!error) log.write(kind, 'error', 'request failed unexpectedly', { ...values, error: thrown });
    else if (status === 503 || status === 429)
      log.write(kind, 'warn', 'request refused', { ...values, code: error.code, reason: error.message });
    else if (status >= 500) log.write(kind, 'error', 'request failed', { ...values, error });
    else log.write(kind, 'debug', 'request refused', { ...values, code: error.code });

    if (error?.code === 'ERR_UNAUTHORIZED' && !reply.hasHeader('WWW-Authenticate')) {
      reply.header('WWW-Authenticate', 'Basic realm="rdctl", charset="UTF-8"');
    }
    if (status === 429) reply.header('Retry-After', RETRY_AFTER);
    // A body that is not read is not waited for.
    if (status === 503 && !request.raw.complete) reply.header('Connection', 'close');
    reply.code(status);
    if (/^\/v2\//i.test(path)) {
      reply.type(JSON_TYPE).send(indentedJson(documentOf(error)));
    } else {
      reply.type(TEXT_TYPE).send(textOf(error));
    }
  };
}

/** The path as sent, without the query string. */
export function pathOf(request: FastifyRequest): string {
  return request.originalUrl.split('?', 1)[0] ?? '';
}

/** A request, in the values of a line of the log. */
export function describeRequest(request: FastifyRequest): { method: string; path: string } {
  const path = pathOf(request);
  return {
    method: request.method,
    path: path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path,
  };
}

/** The route of a request, as a kind of lines: all paths without a route are one. */
export function routeOf(request: FastifyRequest): string {
  return request.is404 ? 'without a route' : `${request.method} ${request.routeOptions.url ?? ''}`;
}

function expectedError(thrown: unknown): RdError | undefined {
  if (thrown instanceof RdError) return thrown;
  // Fastify's own errors, such as a body that does not match its schema, or an aborted upload.
  if (
    thrown instanceof Error &&
    'statusCode' in thrown &&
    typeof thrown.statusCode === 'number' &&
    thrown.statusCode < 500
  ) {
    return new RdError('ERR_BODY_INVALID', thrown.message, { cause: thrown });
  }
  return undefined;
}

function textOf(error: RdError | undefined): string {
  if (!error) return TEXTS.internal;
  return [error.message, ...error.details, ...(error.advice === undefined ? [] : [error.advice])].join('\n');
}

function documentOf(error: RdError | undefined): ErrorDocument {
  if (!error) {
    return { code: 'ERR_INTERNAL', message: TEXTS.internal, advice: SEE_LOG };
  }
  return {
    code: error.code,
    message: error.message,
    advice: error.advice ?? ADVICE[error.code] ?? SEE_LOG,
    ...(error.details.length === 0 ? {} : { details: [...error.details] }),
    ...(error.findings.length === 0 ? {} : { findings: [...error.findings] }),
  };
}
