import { ERRORS, type ErrorCode, messageOf, RdError, type SettingsFinding } from '../errors.ts';
import { defined, isObject, parseObject } from '../json.ts';
import { systemCode } from '../os/io-error.ts';
import { addressOf, type Connection, type HttpRequest, type HttpResponse } from './connection.ts';

/**
 * Maps a status other than 2xx to an error. The first line is worded as in Rancher Desktop's `rdctl`, except for requests that it never makes; the
 * server's message follows.
 */
export function refusal(connection: Connection, request: HttpRequest, response: HttpResponse): RdError {
  const text = response.body.toString().trim();
  const { status, statusText } = response;
  if (isWebPage(response)) {
    return notOurService(connection, `its response to ${request.method} ${request.path} is a web page`);
  }
  if (status === 401) return unauthorizedError(connection, response);
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
    case 429:
      return new RdError('ERR_TOO_MANY', unexpected, said);
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
  const advice = 'It may be the compatible application or an older release; `rdctl api /` lists its endpoints.';
  return path.startsWith('/v2/')
    ? new RdError('ERR_NOT_FOUND', what, { advice })
    : new RdError('ERR_NOT_FOUND', `${unexpected}: ${what}`, { advice });
}

/**
 * Returns the error for a 401: the service and the rejected user, and the source of the password. Starts with the wording of Rancher Desktop's
 * `rdctl`.
 */
export function unauthorizedError(connection: Connection, { body }: Pick<HttpResponse, 'body'>): RdError {
  const text = body.toString().trim();
  const said = parseObject(text);
  const message = said?.code === 'ERR_UNAUTHORIZED' ? String(said.message) : text.split('\n', 1)[0];
  if (!message || !/^Unauthorized(?:$|: )/.test(message)) {
    return notOurService(connection, 'it requires a different kind of credentials');
  }
  // Only refusals of tokens have a reason.
  const details = message === 'Unauthorized' ? [] : [message.slice('Unauthorized: '.length)];
  const { host, port, user, file, passwordFrom } = connection;
  const source = passwordFrom ?? file ?? 'the connection flags';
  return new RdError(
    'ERR_UNAUTHORIZED',
    `401 Unauthorized: user/password not accepted by http://${host}:${port} for the user ${JSON.stringify(user)} with the password of ${source}`,
    { details, advice: passwordAdvice(connection) },
  );
}

function passwordAdvice({ passwordFrom, file, foreign }: Connection): string {
  if (passwordFrom === undefined && file !== undefined) {
    if (foreign) return `Restart the application that wrote ${file}, or give --user and --password-file.`;
    return `${file} is from an earlier run or another service, or was changed: restart the service with \`rdctl shutdown\` and \`rdctl start\`.`;
  }
  const omit = passwordFrom === 'RDCTL_PASSWORD' ? 'unset it' : 'omit it';
  const rest = file === undefined ? '' : `, or ${omit} to use the one in ${file}`;
  return `Correct ${passwordFrom ?? '--user and --password-file'}${rest}.`;
}

/** Parses the error document of our API (`schemas/error.json`). */
function structuredError(response: HttpResponse): RdError | undefined {
  if (!String(response.headers['content-type'] ?? '').startsWith('application/json')) return undefined;
  const value = parseObject(response.body.toString());
  if (!value || typeof value.code !== 'string' || typeof value.message !== 'string') return undefined;
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

type Address = Pick<Connection, 'host' | 'port'>;

/** Describes a failed request in the format of Rancher Desktop's `rdctl`: `Get "http://127.0.0.1:6107/": EOF`. */
export function requestText(
  address: Address,
  { method, path }: Pick<HttpRequest, 'method' | 'path'>,
  cause: unknown,
): string {
  const verb = method.charAt(0).toUpperCase() + method.slice(1).toLowerCase();
  return `${verb} "http://${addressOf(address)}${path}": ${reasonText(address, cause)}`;
}

function reasonText(address: Address, cause: unknown): string {
  const code = systemCode(cause);
  const dial = `dial tcp ${addressOf(address)}: connect: `;
  switch (code) {
    case 'ENOTFOUND':
      return `dial tcp: lookup ${address.host}: no such host`;
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `${dial}connection refused`;
    case 'EHOSTUNREACH':
      return `${dial}no route to host`;
    case 'ENETUNREACH':
      return `${dial}network is unreachable`;
    case 'ECONNRESET':
      return 'EOF';
    default:
      // The aggregate error of several addresses has no message.
      return messageOf(cause) || `${code}`;
  }
}

/** Formats a refused connection in full, like `api` and `extension` of Rancher Desktop's `rdctl`; returns other errors unchanged. */
function fullConnectionError(address: Address, request: HttpRequest, error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_RUNNING' || error.cause === undefined) return error;
  const { advice, cause } = error;
  const message = requestText(address, request, cause);
  return new RdError('ERR_NOT_RUNNING', message, { cause, ...defined({ advice }) });
}

interface Caller {
  connection: Connection;
  request(request: HttpRequest): Promise<HttpResponse>;
}

/**
 * Sends a request and returns the reply's sentence.
 * @throws RdError for transport failures and every unsuccessful reply.
 */
export async function sentenceOf(client: Caller, request: HttpRequest): Promise<string> {
  const response = await client.request(request);
  if (response.status < 200 || response.status > 299 || isWebPage(response)) {
    throw refusal(client.connection, request, response);
  }
  return response.body.toString();
}

/**
 * Sends a request for a command that shows the reply, whatever its status.
 * @throws RdError for transport failures, and for replies that are not from a service.
 */
export async function answerOf({ connection, request: send }: Caller, request: HttpRequest): Promise<HttpResponse> {
  const response = await send(request).catch((error: unknown) => {
    throw fullConnectionError(connection, request, error);
  });
  if (!isWebPage(response)) return response;
  throw notOurService(connection, `its response to ${request.method} ${request.path.split('?', 1)[0]} is a web page`);
}

/** Returns advice to print beside such a reply; undefined if it needs none. */
export function replyNote({ connection }: Caller, response: HttpResponse): string | undefined {
  if (response.status !== 401) return undefined;
  const { message, advice } = unauthorizedError(connection, response);
  return advice === undefined ? message : `${message}\n${advice}`;
}

/** Whether a reply is a web page, which no service returns; other programs often do. */
export function isWebPage({ headers, body }: Pick<HttpResponse, 'headers' | 'body'>): boolean {
  const type = String(headers['content-type'] ?? '');
  return (
    type.startsWith('text/html') || (!type.startsWith('application/json') && /^\s*</.test(body.toString('utf8', 0, 64)))
  );
}

/** The error for a listener that is not a service that we support. */
export function notOurService(connection: Connection, detail: string, cause?: unknown): RdError {
  const from = connection.file === undefined ? 'the connection flags' : connection.file;
  return new RdError(
    'ERR_CONNECTION',
    `another program answers on ${connection.host}:${connection.port}, the address in ${from}: ${detail}`,
    {
      ...defined({ cause }),
      advice: 'If the service is not running, start it with `rdctl start`; it uses the next free port.',
    },
  );
}
