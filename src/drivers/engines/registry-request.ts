import { isDigest, isRepository } from '../../allowed-images/reference.ts';
import { isImageTag } from '../../settings/image-name.ts';

/** What a request to a registry is about. */
export type RegistryRequest =
  /** Somebody wants to know or have an image. Exactly one of tag and digest is there. */
  | { wants: 'manifest'; repository: string; tag?: string; digest?: string }
  /** Something else of one repository: content by its digest, its tags, what refers to one of its images. */
  | { wants: 'content'; repository: string }
  /** Anything else of the registry's interface: its version, a list of its repositories, writes. */
  | { wants: 'other' }
  /** Not a path of that interface, and not like one. */
  | { wants: 'unknown' }
  /** A server could read it as a path of that interface in another way than we do. */
  | { wants: 'unclear' };

const UNCLEAR: RegistryRequest = { wants: 'unclear' };
const OTHER: RegistryRequest = { wants: 'other' };

/** What searches ask of a registry without TLS. No image comes that way. */
const SEARCHES = ['/v1/_ping', '/v1/search'];

/**
 * Reads the path of a request by the grammar of the distribution specification, in the one spelling that clients use: without escapes,
 * empty parts, or a slash too many. A repository may itself have parts called `manifests` and the like, so the last counts.
 */
export function registryRequest(method: string, path: string): RegistryRequest {
  const reading = method === 'GET' || method === 'HEAD';
  if (!path.startsWith('/v2/')) {
    if (path === '/v2' || SEARCHES.includes(path)) return reading ? OTHER : UNCLEAR;
    return isLikeRegistry(path) ? UNCLEAR : { wants: 'unknown' };
  }
  const parts = path.slice('/v2/'.length).split('/');
  // Its version, its catalogue; some hand out tokens at such a place as well.
  if (parts.length === 1) return /^\w*$/.test(parts[0] ?? '') && (reading || method === 'POST') ? OTHER : UNCLEAR;
  const [before = '', kind = '', last = ''] = parts.slice(-3);
  if (before === 'blobs' && kind === 'uploads')
    return ofRepository(parts.slice(0, -3), /^[\w.=-]*$/.test(last) && OTHER);
  const repository = parts.slice(0, -2);
  switch (kind) {
    case 'manifests':
      if (!isDigest(last) && !isImageTag(last)) return UNCLEAR;
      if (!reading) return ofRepository(repository, /^(?:PUT|DELETE)$/.test(method) && OTHER);
      return ofRepository(repository, {
        wants: 'manifest',
        repository: repository.join('/'),
        ...(isDigest(last) ? { digest: last } : { tag: last }),
      });
    case 'blobs':
      // A push asks with HEAD whether a layer is there already.
      if (method === 'HEAD' || method === 'DELETE') return ofRepository(repository, isDigest(last) && OTHER);
      return ofRepository(repository, method === 'GET' && isDigest(last) && content(repository));
    case 'referrers':
      return ofRepository(repository, reading && isDigest(last) && content(repository));
    case 'tags':
      return ofRepository(repository, reading && last === 'list' && content(repository));
    default:
      return UNCLEAR;
  }
}

function content(repository: readonly string[]): RegistryRequest {
  return { wants: 'content', repository: repository.join('/') };
}

function ofRepository(repository: readonly string[], request: RegistryRequest | false): RegistryRequest {
  return request && isRepository(repository.join('/')) ? request : UNCLEAR;
}

/** Whether a server that is lenient about letters, escapes, signs or what comes first could take it for the path of an image. */
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
