import { posix } from 'node:path';
import type { ImageReference } from '../../allowed-images/reference.ts';
import { isDigest, parseReference, withDefaultTag } from '../../allowed-images/reference.ts';
import { isObject } from '../../json.ts';

/** A request to dockerd as its authorization plugin is shown it. */
export interface EngineCall {
  method: string;
  /** As it was sent: escaped, with version and query. */
  uri: string;
  headers: Readonly<Record<string, string>>;
  /** Of JSON requests only. */
  body?: string;
}

/** What a request would bring into the engine. */
export type Asked =
  | { brings: 'nothing' }
  | { brings: 'images'; references: readonly ImageReference[] }
  /** Images without a name that could be looked at. `what` is a subject: `loading an archive`. */
  | { brings: 'anything'; what: string }
  /** It cannot be told; `why` is a clause. */
  | { brings: 'unknown'; why: string };

const NOTHING: Asked = { brings: 'nothing' };

/**
 * Reads a request the way dockerd does: the path unescaped, the first of several parameters of one name, a form in the body
 * before the query. What dockerd could understand in another way is `unknown`.
 */
export function askedOf(call: EngineCall): Asked {
  if (call.method !== 'POST') return NOTHING;
  const target = targetOf(call.uri);
  if (target === undefined) return { brings: 'unknown', why: 'its path cannot be read' };
  const { path, query } = target;
  const reader = READERS.find(({ at }) => at.test(path));
  if (!reader) return NOTHING;
  if (isForm(call.headers)) {
    return { brings: 'unknown', why: 'it is sent as a form, whose content is not shown to the list of allowed images' };
  }
  return reader.read(query, call);
}

const READERS: readonly { at: RegExp; read: (query: URLSearchParams, call: EngineCall) => Asked }[] = [
  { at: /^\/images\/create$/, read: imageCreate },
  { at: /^\/images\/load$/, read: () => ({ brings: 'anything', what: 'loading an archive of images' }) },
  // An archive as well: the file system of a plugin, which dockerd runs as root.
  { at: /^\/plugins\/create$/, read: () => ({ brings: 'anything', what: 'creating a plugin' }) },
  { at: /^\/plugins\/pull$/, read: pluginPull },
  { at: /^\/plugins\/.+\/upgrade$/, read: pluginPull },
  { at: /^\/services\/create$/, read: (_query, call) => service(call) },
  { at: /^\/services\/[^/]+\/update$/, read: (_query, call) => service(call) },
];

function targetOf(uri: string): { path: string; query: URLSearchParams } | undefined {
  const [before = '', query = ''] = splitOnce(uri, '?');
  // A client may send the whole address, as it would to a proxy.
  const path = before.replace(/^https?:\/\/[^/]*/i, '');
  try {
    const clean = posix
      .normalize(decodeURIComponent(path))
      .replace(/^\/+/, '/')
      .replace(/(.)\/$/, '$1');
    return { path: clean.replace(/^\/v[0-9.]+(?=\/)/, ''), query: new URLSearchParams(query) };
  } catch {
    return undefined;
  }
}

function splitOnce(text: string, sign: string): string[] {
  const at = text.indexOf(sign);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function isForm(headers: EngineCall['headers']): boolean {
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
  return /^\s*application\/x-www-form-urlencoded/i.test(type);
}

/** `fromImage` with a tag or digest in it or in `tag`, which is the stronger one; without either, every tag. Else an import. */
function imageCreate(query: URLSearchParams): Asked {
  const image = query.get('fromImage') ?? '';
  if (image === '') return { brings: 'anything', what: 'importing an archive' };
  const named = parseReference(image.replace(/:$/, ''));
  if (!named) return notAName(image);
  const tag = query.get('tag') ?? '';
  if (tag === '') return { brings: 'images', references: [named] };
  const { registry, repository, digest } = named;
  if (isDigest(tag.toLowerCase())) {
    return { brings: 'images', references: [{ registry, repository, digest: tag.toLowerCase() }] };
  }
  return { brings: 'images', references: [{ registry, repository, tag, ...(digest === undefined ? {} : { digest }) }] };
}

function pluginPull(query: URLSearchParams): Asked {
  const remote = query.get('remote') ?? '';
  const named = parseReference(remote);
  return named ? { brings: 'images', references: [withDefaultTag(named)] } : notAName(remote);
}

/** A service of a swarm: the engine pulls its image by itself. */
function service({ body }: EngineCall): Asked {
  let value: unknown;
  try {
    value = JSON.parse(body ?? '');
  } catch {
    return { brings: 'unknown', why: 'its body is not shown to the list of allowed images' };
  }
  const tasks = members([value], 'TaskTemplate');
  const names = [
    ...members(members(tasks, 'ContainerSpec'), 'Image'),
    ...members(members(tasks, 'PluginSpec'), 'Remote'),
  ];
  const references: ImageReference[] = [];
  for (const name of names) {
    const named = typeof name === 'string' ? parseReference(name) : undefined;
    if (!named) return notAName(String(name));
    references.push(withDefaultTag(named));
  }
  return references.length === 0 ? NOTHING : { brings: 'images', references };
}

/** Every member of that name, in any case: dockerd does not mind the case of names in JSON. */
function members(values: readonly unknown[], name: string): unknown[] {
  return values.flatMap((value) =>
    isObject(value)
      ? Object.entries(value).flatMap(([key, member]) => (key.toLowerCase() === name.toLowerCase() ? [member] : []))
      : [],
  );
}

function notAName(text: string): Asked {
  return { brings: 'unknown', why: `${JSON.stringify(text.slice(0, 100))} is no name of an image` };
}
