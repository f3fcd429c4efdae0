import type { Client } from './client.ts';
import { type HttpRequest, type HttpResponse, isWebPage, notOurService } from './http.ts';
import { refusal, unauthorized } from './refusal.ts';
import { fullConnectionError } from './request-text.ts';

type Caller = Pick<Client, 'connection' | 'request'>;

/**
 * Sends a request and returns the reply's sentence.
 * @throws RdError as the client's methods do, for transport failures and every unsuccessful reply.
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
  throw notOurService(connection, `its answer to ${request.method} ${request.path.split('?', 1)[0]} is a web page`);
}

/** Advice to print beside such a reply; `undefined` when it needs none. */
export function replyNote({ connection }: Caller, response: HttpResponse): string | undefined {
  if (response.status !== 401) return undefined;
  const { message, advice } = unauthorized(connection, response);
  return advice === undefined ? message : `${message}\n${advice}`;
}
