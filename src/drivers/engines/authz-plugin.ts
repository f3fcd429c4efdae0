import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { posix } from 'node:path';
import { explainImage, explainUnnamed } from '../../allowed-images/allow-list.ts';
import { defined, isObject, parseJson } from '../../json.ts';
import { bytesOf } from '../../os/stream-bytes.ts';
import {
  type ImageReference,
  isDigest,
  isImageTag,
  parseReference,
  withDefaultTag,
} from '../../settings/image-reference.ts';
import type { PluginParts } from './pull-guard.ts';
import type { PullPolicy } from './pull-policy.ts';

/** dockerd sends at most 1 MiB of body, in base64; a larger request is not from dockerd. */
const MAX_BODY = 8 * 1024 * 1024;

/** Creates the server of dockerd's authorization plugin: dockerd queries it before every API request, and blocks until it responds. */
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
      parts.onQuery();
      const why = denial(callOf((await bytesOf(request, MAX_BODY)).toString('utf8')), parts.policy);
      if (why === undefined) return { Allow: true };
      parts.onDenied(why);
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

/** Returns the reason that dockerd must refuse a request, or undefined if it is allowed. */
export function denial(call: EngineCall | undefined, policy: PullPolicy): string | undefined {
  const list = policy.list();
  if (!call) return 'the request could not be parsed to check it against the allowed images';
  if (list.allowsEverything) return undefined;
  const parsed = parseEngineCall(call);
  switch (parsed.brings) {
    case 'nothing':
      return undefined;
    case 'images': {
      const refused = parsed.references.find((reference) => !list.allows(reference));
      return refused && explainImage(refused, list.patterns);
    }
    case 'anything':
      return explainUnnamed(parsed.what);
    case 'unknown':
      return `the request could bring in an image that is not allowed: ${parsed.why}`;
  }
}

function callOf(text: string): EngineCall | undefined {
  const value = parseJson(text);
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

/** Discards all data of a request. */
async function end(request: IncomingMessage): Promise<void> {
  request.resume();
  if (!request.readableEnded) await once(request, 'end');
}

function reply(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/vnd.docker.plugins.v1.1+json');
  response.end(JSON.stringify(body));
}

/** A request to dockerd as its authorization plugin sees it. */
export interface EngineCall {
  method: string;
  /** As received: escaped, with version and query. */
  uri: string;
  headers: Readonly<Record<string, string>>;
  /** Present only for JSON requests. */
  body?: string;
}

/** The images that a request would bring into the engine. */
export type RequestedImages =
  | { brings: 'nothing' }
  | { brings: 'images'; references: readonly ImageReference[] }
  /** Images whose names cannot be checked. `what` is a subject: `loading an archive`. */
  | { brings: 'anything'; what: string }
  /** Undecidable; `why` is a clause. */
  | { brings: 'unknown'; why: string };

const NOTHING: RequestedImages = { brings: 'nothing' };

/**
 * Parses a request as dockerd would, in the spelling that clients use. Everything that dockerd could parse differently, and every unknown
 * request that may change something, is `unknown`.
 */
export function parseEngineCall(call: EngineCall): RequestedImages {
  if (READING.has(call.method)) return NOTHING;
  const target = targetOf(call.uri);
  if (!target) return unknown('its target is not in the usual form, such as /v1.41/images/create');
  const { path, query, escaped } = target;
  const route = ROUTES.find(({ method, at }) => method === call.method && at.test(path));
  if (!route) return unknown('this method and path are unknown');
  if (!route.read) return NOTHING;
  if (escaped) return unknown('its path contains escapes');
  const parameters = parametersOf(query);
  if (!parameters) return unknown('its query repeats a parameter, or is not in the usual form');
  return route.read(parameters, call);
}

/** Methods with which dockerd brings nothing in, whatever the path. */
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE']);

type Reader = (parameters: URLSearchParams, call: EngineCall) => RequestedImages;

/**
 * Every request of dockerd's API that may change something; those without `read` bring no image in. Builds are among them: the gateway
 * checks what they fetch.
 */
const ROUTES: readonly { method: 'POST' | 'PUT'; at: RegExp; read?: Reader }[] = [
  { method: 'POST', at: /^\/images\/create$/, read: imageCreate },
  { method: 'POST', at: /^\/images\/load$/, read: anything('loading an archive of images') },
  // An archive too: the file system of a plugin, which dockerd runs as root.
  { method: 'POST', at: /^\/plugins\/create$/, read: anything('creating a plugin') },
  { method: 'POST', at: /^\/plugins\/pull$/, read: pluginPull },
  { method: 'POST', at: /^\/plugins\/.+\/upgrade$/, read: pluginPull },
  // The managers of a swarm decide which images its engines pull.
  { method: 'POST', at: /^\/swarm\/leave$/ },
  { method: 'POST', at: /^\/(?:swarm|services|nodes|configs|secrets)\/.+$/, read: anything('a swarm') },
  { method: 'POST', at: /^\/(?:auth|commit|session|grpc)$/ },
  { method: 'POST', at: /^\/build(?:\/(?:prune|cancel))?$/ },
  { method: 'POST', at: /^\/(?:containers|networks|volumes)\/(?:create|prune)$/ },
  {
    method: 'POST',
    at: /^\/containers\/.+\/(?:attach|checkpoints|copy|exec|kill|pause|rename|resize|restart|start|stop|unpause|update|wait)$/,
  },
  { method: 'PUT', at: /^\/containers\/.+\/archive$/ },
  { method: 'POST', at: /^\/exec\/[^/]+\/(?:resize|start)$/ },
  { method: 'POST', at: /^\/images\/(?:prune|.+\/(?:push|tag))$/ },
  { method: 'POST', at: /^\/networks\/[^/]+\/(?:connect|disconnect)$/ },
  { method: 'POST', at: /^\/plugins\/.+\/(?:disable|enable|push|set)$/ },
  { method: 'PUT', at: /^\/volumes\/[^/]+$/ },
];

/** Parts separated by one slash, no trailing slash, and no character that another parser could take for a separator. */
const PATH = /^(?:\/v\d{1,2}\.\d{1,3})?((?:\/(?:[\w.~!$&'()*+,:@=-]|%[0-9A-Fa-f]{2})+)+)$/;
const QUERY = /^(?:[\w.~!$&'()*+,:@=/?-]|%[0-9A-Fa-f]{2})*$/;

/** Returns the path without its version, unescaped. Undefined unless it is in origin form and dockerd's router would see the same path. */
function targetOf(uri: string): { path: string; query: string; escaped: boolean } | undefined {
  const mark = uri.indexOf('?');
  const [, written] = PATH.exec(mark === -1 ? uri : uri.slice(0, mark)) ?? [];
  const path = written === undefined ? undefined : unescapeText(written);
  if (written === undefined || path === undefined) return undefined;
  if (posix.normalize(path) !== path || path.endsWith('/') || CONTROL.test(path)) return undefined;
  return { path, query: mark === -1 ? '' : uri.slice(mark + 1), escaped: path !== written };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters on purpose.
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Parses a query. Undefined unless every parser extracts the same names and values. */
function parametersOf(query: string): URLSearchParams | undefined {
  if (!QUERY.test(query) || unescapeText(query) === undefined) return undefined;
  const parameters = new URLSearchParams(query);
  return new Set(parameters.keys()).size === parameters.size ? parameters : undefined;
}

function unescapeText(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const FORM_REASON = 'its body could be a form, which takes precedence over its query';

/**
 * True if dockerd may read the body as a form. For repeated headers dockerd uses the first and reports the last. It passes a body to the plugin only
 * when the first type is JSON, and its length only when it is not chunked.
 */
function mayBeForm({ headers, body }: EngineCall): boolean {
  if (body) return false;
  const header = (headerName: string) =>
    Object.entries(headers).find(([name]) => name.toLowerCase() === headerName)?.[1];
  return header('content-type') !== undefined && header('content-length') !== '0';
}

function anything(what: string): Reader {
  return () => ({ brings: 'anything', what });
}

/**
 * Reads the image of a pull: `fromImage` with a tag or digest in it or in `tag`, which takes precedence; without either, every tag. Otherwise it is
 * an import.
 */
function imageCreate(query: URLSearchParams, call: EngineCall): RequestedImages {
  const image = query.get('fromImage') ?? '';
  if (image === '') return { brings: 'anything', what: 'importing an archive' };
  if (mayBeForm(call)) return unknown(FORM_REASON);
  const named = parseReference(image.replace(/:$/, ''));
  if (!named) return uncheckableName(image);
  const tag = query.get('tag') ?? '';
  if (tag === '') return { brings: 'images', references: [named] };
  const { registry, repository, digest } = named;
  if (isDigest(tag)) return { brings: 'images', references: [{ registry, repository, digest: tag }] };
  if (!isImageTag(tag)) return uncheckableName(`${image}:${tag}`);
  return { brings: 'images', references: [{ registry, repository, tag, ...defined({ digest }) }] };
}

function pluginPull(query: URLSearchParams, call: EngineCall): RequestedImages {
  if (mayBeForm(call)) return unknown(FORM_REASON);
  const remote = query.get('remote') ?? '';
  const named = parseReference(remote);
  return named ? { brings: 'images', references: [withDefaultTag(named)] } : uncheckableName(remote);
}

function uncheckableName(text: string): RequestedImages {
  return unknown(`${JSON.stringify(text.slice(0, 100))} is not an image name`);
}

function unknown(why: string): RequestedImages {
  return { brings: 'unknown', why };
}
