import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { explainImage, explainUnnamed } from '../../allowed-images/allow-list.ts';
import { isObject } from '../../json.ts';
import type { EngineCall } from './authz-request.ts';
import { parseEngineCall } from './authz-request.ts';
import type { PluginParts } from './pull-guard.ts';
import type { PullPolicy } from './pull-policy.ts';

/** dockerd sends at most 1 MiB of body, in base64; a larger request is not from dockerd. */
const MAX_BODY = 8 * 1024 * 1024;

/** The server of dockerd's authorization plugin: dockerd queries it before every API request, and blocks until it responds. */
export function authzPlugin(parts: PluginParts): Server {
  return createServer((request, response) => {
    answer(request, parts).then(
      (body) => reply(response, body),
      (error: unknown) => reply(response, { Allow: false, Err: String(error) }),
    );
  });
}

async function answer(request: IncomingMessage, parts: PluginParts): Promise<object> {
  switch (request.url) {
    case '/Plugin.Activate':
      await end(request);
      return { Implements: ['authz'] };
    case '/AuthZPlugin.AuthZReq': {
      parts.asked();
      const why = denial(callOf(await bodyOf(request)), parts.policy);
      if (why === undefined) return { Allow: true };
      parts.refused(why);
      return { Allow: false, Msg: why };
    }
    // The response to an allowed request, of any length.
    case '/AuthZPlugin.AuthZRes':
      await end(request);
      return { Allow: true };
    default:
      await end(request);
      return { Allow: false, Err: `unknown request ${request.url}` };
  }
}

/** Why dockerd must refuse a request; undefined when it is allowed. */
export function denial(call: EngineCall | undefined, policy: PullPolicy): string | undefined {
  const list = policy.list();
  if (!call) return 'the request could not be understood by the list of allowed images';
  if (list.allowsEverything) return undefined;
  const asked = parseEngineCall(call);
  switch (asked.brings) {
    case 'nothing':
      return undefined;
    case 'images': {
      const refused = asked.references.find((reference) => !list.allows(reference));
      return refused && explainImage(refused, list.patterns);
    }
    case 'anything':
      return explainUnnamed(asked.what);
    case 'unknown':
      return `the request could bring in an image that is not allowed: ${asked.why}`;
  }
}

function callOf(text: string): EngineCall | undefined {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) return undefined;
  const { RequestMethod, RequestUri, RequestHeaders, RequestBody } = value;
  if (typeof RequestMethod !== 'string' || typeof RequestUri !== 'string') return undefined;
  const headers = Object.entries(isObject(RequestHeaders) ? RequestHeaders : {}).flatMap(([name, header]) =>
    typeof header === 'string' ? [[name, header] as const] : [],
  );
  return {
    method: RequestMethod,
    uri: RequestUri,
    headers: Object.fromEntries(headers),
    ...(typeof RequestBody === 'string' ? { body: Buffer.from(RequestBody, 'base64').toString('utf8') } : {}),
  };
}

/** Discards all data. */
async function end(request: IncomingMessage): Promise<void> {
  request.resume();
  if (!request.readableEnded) await once(request, 'end');
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY) throw new Error('the request is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reply(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/vnd.docker.plugins.v1.1+json');
  response.end(JSON.stringify(body));
}
