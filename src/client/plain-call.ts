import { type Client, refusal } from './client.ts';
import { type HttpRequest, isWebPage } from './http.ts';

/**
 * Sends a request and returns the sentence that it is answered with.
 * @throws RdError as the methods of the client do, for failures of the transport and for every answer that is not a success.
 */
export async function sentenceOf(
  client: Pick<Client, 'connection' | 'request'>,
  request: HttpRequest,
): Promise<string> {
  const response = await client.request(request);
  if (response.status < 200 || response.status > 299 || isWebPage(response)) {
    throw refusal(client.connection, request, response);
  }
  return response.body.toString();
}
