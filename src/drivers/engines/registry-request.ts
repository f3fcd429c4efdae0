import { isDigest, isImageTag, isRepository } from '../../settings/image-reference.ts';

/** The object that a registry request refers to. */
export type RegistryRequest =
  /** An image is checked or pulled. Exactly one of tag and digest is set. */
  | { wants: 'manifest'; repository: string; tag?: string; digest?: string }
  /** Anything else in one repository: blobs by digest, tags, referrers. */
  | { wants: 'content'; repository: string }
  /** The rest of the registry API: its version, its catalog, writes. */
  | { wants: 'other' }
  /** Not an API path, and not similar to one. */
  | { wants: 'unknown' }
  /** A server could parse it as an API path, but differently from us. */
  | { wants: 'unclear' };

const UNCLEAR: RegistryRequest = { wants: 'unclear' };
const OTHER: RegistryRequest = { wants: 'other' };

/** Search paths of a registry without TLS. They return no image. */
const SEARCHES = ['/v1/_ping', '/v1/search'];

/**
 * Parses a request path by the OCI distribution specification, in the one spelling that clients use: without escapes, empty parts or extra
 * slashes. A repository may itself contain parts such as `manifests`, so the last one counts.
 */
export function registryRequest(method: string, path: string): RegistryRequest {
  const reading = method === 'GET' || method === 'HEAD';
  if (!path.startsWith('/v2/')) {
    if (path === '/v2' || SEARCHES.includes(path)) return reading ? OTHER : UNCLEAR;
    return isLikeRegistry(path) ? UNCLEAR : { wants: 'unknown' };
  }
  const parts = path.slice('/v2/'.length).split('/');
  // Version and catalog; some registries issue tokens there too.
  if (parts.length === 1) return /^\w*$/.test(parts[0] ?? '') && (reading || method === 'POST') ? OTHER : UNCLEAR;
  const [before = '', kind = '', last = ''] = parts.slice(-3);
  if (before === 'blobs' && kind === 'uploads')
    return repositoryRequest(parts.slice(0, -3), /^[\w.=-]*$/.test(last) && OTHER);
  const repository = parts.slice(0, -2);
  switch (kind) {
    case 'manifests':
      if (!isDigest(last) && !isImageTag(last)) return UNCLEAR;
      if (!reading) return repositoryRequest(repository, /^(?:PUT|DELETE)$/.test(method) && OTHER);
      return repositoryRequest(repository, {
        wants: 'manifest',
        repository: repository.join('/'),
        ...(isDigest(last) ? { digest: last } : { tag: last }),
      });
    case 'blobs':
      // A push uses HEAD to check whether a layer exists already.
      if (method === 'HEAD' || method === 'DELETE') return repositoryRequest(repository, isDigest(last) && OTHER);
      return repositoryRequest(repository, method === 'GET' && isDigest(last) && content(repository));
    case 'referrers':
      return repositoryRequest(repository, reading && isDigest(last) && content(repository));
    case 'tags':
      return repositoryRequest(repository, reading && last === 'list' && content(repository));
    default:
      return UNCLEAR;
  }
}

function content(repository: readonly string[]): RegistryRequest {
  return { wants: 'content', repository: repository.join('/') };
}

function repositoryRequest(repository: readonly string[], request: RegistryRequest | false): RegistryRequest {
  return request && isRepository(repository.join('/')) ? request : UNCLEAR;
}

/** True if a server that is lenient about case, escapes, separators or prefixes could take it for the path of an image. */
function isLikeRegistry(path: string): boolean {
  let text = path;
  for (let round = 0; text.includes('%'); round += 1) {
    try {
      text = decodeURIComponent(text);
    } catch {
      return true;
    }
    if (round === 3) return true;
  }
  const parts = text
    .toLowerCase()
    .split(/[/\\]/)
    .map((part) => part.replace(/;.*/s, '').trim())
    .filter((part) => !/^\.*$/.test(part));
  return /^v[12]$/.test(parts[0] ?? '') || parts.includes('manifests');
}
