import { ERRORS, type ErrorCode, RdError, type SettingsFinding } from '../errors.ts';
import { isObject } from '../json.ts';
import type { Connection } from './connection.ts';
import { type HttpRequest, type HttpResponse, isWebPage, notOurService } from './http.ts';

/**
 * Maps a status other than 2xx to an error. The first line is worded as in Rancher Desktop's `rdctl`, except for
 * requests that it never makes; the server's message follows.
 */
export function refusal(connection: Connection, request: HttpRequest, response: HttpResponse): RdError {
  const text = response.body.toString().trim();
  const { status, statusText } = response;
  if (isWebPage(response)) {
    return notOurService(connection, `its answer to ${request.method} ${request.path} is a web page`);
  }
  if (status === 401) return unauthorized(connection, response);
  const structured = structuredError(response);
  if (structured) return structured;
  const said = { details: text === '' ? [] : text.split('\n') };
  const unexpected = `${status} ${statusText} (unexpected server error)`;
  switch (status) {
    case 400:
      return new RdError(
        request.path.endsWith('settings') ? 'ERR_SETTINGS_INVALID' : 'ERR_BODY_INVALID',
        text === '' ? `${status} ${statusText}` : text,
      );
    case 403:
      return new RdError('ERR_FORBIDDEN', unexpected, said);
    case 404:
      return text.startsWith('Unknown command: ')
        ? unknownEndpoint(request, unexpected)
        : notOurService(connection, `it has no ${request.path}`);
    case 412:
      return new RdError('ERR_PRECONDITION_FAILED', text === '' ? unexpected : text);
    case 413:
      return new RdError('ERR_BODY_TOO_LARGE', `${status} ${statusText}`, said);
    case 500:
      return new RdError(
        'ERR_INTERNAL',
        '500 Internal Server Error: server-side problem: please consult the server logs for more information',
        text === 'Internal Server Error' || text === 'internal error' ? {} : said,
      );
    case 503:
      return new RdError('ERR_NOT_READY', unexpected, said);
    default:
      return new RdError('ERR_CONNECTION', unexpected, said);
  }
}

function unknownEndpoint({ method, path }: HttpRequest, unexpected: string): RdError {
  const what = `the service has no ${method} ${path}`;
  const advice = 'It may be the compatible application or an older release; `rdctl api /` lists what it has.';
  return path.startsWith('/v2/')
    ? new RdError('ERR_NOT_FOUND', what, { advice })
    : new RdError('ERR_NOT_FOUND', `${unexpected}: ${what}`, { advice });
}

/**
 * A 401: which service rejected which user, and where the password came from. Starts with the wording of Rancher
 * Desktop's `rdctl`.
 */
export function unauthorized(connection: Connection, { body }: Pick<HttpResponse, 'body'>): RdError {
  const text = body.toString().trim();
  if (text !== 'Unauthorized' && !/"code": *"ERR_UNAUTHORIZED"/.test(text)) {
    return notOurService(connection, 'it wants credentials of another kind');
  }
  const { host, port, user, file, passwordFrom } = connection;
  const source = passwordFrom ?? file ?? 'the connection flags';
  return new RdError(
    'ERR_UNAUTHORIZED',
    `401 Unauthorized: user/password not accepted by http://${host}:${port} for the user ${JSON.stringify(user)} with the password of ${source}`,
    { advice: passwordAdvice(connection) },
  );
}

function passwordAdvice({ passwordFrom, file, foreign }: Connection): string {
  if (passwordFrom === undefined && file !== undefined) {
    if (foreign) return `Restart the application that wrote ${file}, or give --user and --password-file.`;
    return `${file} is of an earlier run, of another service, or was changed: stop the service with \`rdctl shutdown\`, then start it again with \`rdctl start\`.`;
  }
  const omit = passwordFrom === 'RDCTL_PASSWORD' ? 'unset it' : 'leave it out';
  const rest = file === undefined ? '' : `, or ${omit} to use that of ${file}`;
  return `Correct ${passwordFrom ?? '--user and --password-file'}${rest}.`;
}

/** The error document of our API (`schemas/error.json`). */
function structuredError(response: HttpResponse): RdError | undefined {
  if (!String(response.headers['content-type'] ?? '').startsWith('application/json')) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(response.body.toString());
  } catch {
    return undefined;
  }
  if (!isObject(value) || typeof value.code !== 'string' || typeof value.message !== 'string') return undefined;
  const { code, advice, details, findings } = value;
  const lines = Array.isArray(details) ? details.filter((line) => typeof line === 'string') : [];
  return new RdError(isCode(code) ? code : 'ERR_INTERNAL', value.message, {
    details: lines,
    findings: Array.isArray(findings) ? findings.flatMap((finding) => (isFinding(finding) ? [finding] : [])) : [],
    ...(typeof advice === 'string' ? { advice } : {}),
  });
}

function isFinding(value: unknown): value is SettingsFinding {
  if (!isObject(value) || typeof value.pointer !== 'string' || typeof value.message !== 'string') return false;
  return [value.expected, value.suggestion].every((text) => text === undefined || typeof text === 'string');
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}
