import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERRORS, RdError, type SettingsFinding } from '../errors.ts';
import type { Log } from './context.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from './wire-texts.ts';

/** The document of `schemas/error.json`: every error below `/v2`. */
export interface ErrorDocument {
  code: string;
  message: string;
  advice?: string;
  details?: string[];
  findings?: SettingsFinding[];
}

/** The one exit for errors of the API: a sentence as text, a document below `/v2`; a bug shows nothing but that it is one. */
export function createErrorHandler(log: Log) {
  return function handleError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const error = expected(thrown);
    const { status } = error ? ERRORS[error.code] : ERRORS.ERR_INTERNAL;
    const path = pathOf(request);
    if (!error) log('error', 'request failed unexpectedly', { method: request.method, path, error: thrown });
    else if (status >= 500) log('error', 'request failed', { method: request.method, path, error });
    else log('debug', 'request refused', { method: request.method, path, status, code: error.code });

    if (error?.code === 'ERR_UNAUTHORIZED') reply.header('WWW-Authenticate', 'Basic realm="rdctl", charset="UTF-8"');
    reply.code(status);
    if (/^\/v2\//i.test(path)) {
      reply.type(JSON_TYPE).send(`${JSON.stringify(documentOf(error), null, 2)}\n`);
    } else {
      reply.type(TEXT_TYPE).send(textOf(error));
    }
  };
}

/** The path as sent, without the query string. */
export function pathOf(request: FastifyRequest): string {
  return request.originalUrl.split('?', 1)[0] ?? '';
}

function expected(thrown: unknown): RdError | undefined {
  if (thrown instanceof RdError) return thrown;
  // Fastify's own refusals: a body against a schema of ours, a media type, an aborted upload.
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
    return { code: 'ERR_INTERNAL', message: TEXTS.internal, advice: 'Look at the log of the service for the cause.' };
  }
  return {
    code: error.code,
    message: error.message,
    ...(error.advice === undefined ? {} : { advice: error.advice }),
    ...(error.details.length === 0 ? {} : { details: [...error.details] }),
    ...(error.findings.length === 0 ? {} : { findings: [...error.findings] }),
  };
}
