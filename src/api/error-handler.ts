import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERRORS, type ErrorCode, RdError, type SettingsFinding } from '../errors.ts';
import { indentedJson } from '../json.ts';
import type { LimitedLog } from '../os/limited-log.ts';
import { INVALID_ADVICE } from '../plan/requested.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from './wire-texts.ts';

/** The error document of every route under `/v2`, declared in `schemas/error.json`. */
export interface ErrorDocument {
  code: string;
  message: string;
  advice: string;
  details?: string[];
  findings?: SettingsFinding[];
}

/** Advice for errors that carry none. Not sent under `/v1`, where the compatible interface defines every line. */
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
/** The `Retry-After` header, in seconds. */
const RETRY_AFTER = '1';
const SEE_LOG = 'See the service log for the cause.';
/** Characters of a path that are logged, because callers choose the path. */
const LONGEST_PATH = 200;

/**
 * Creates the handler of all errors of the API. It sends a sentence as text, or a document under `/v2`, and reveals no details of a bug. Refusals
 * because of load, frequency or a service that is not ready (503, 429) are warnings in the log, without a stack.
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
    // The client is still sending a body that nobody will read.
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

/** Returns the method and path of a request, for a log line. */
export function describeRequest(request: FastifyRequest): { method: string; path: string } {
  const path = pathOf(request);
  return {
    method: request.method,
    path: path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path,
  };
}

/** Returns the route of a request, by which log lines are limited: all paths without a route count as one. */
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
