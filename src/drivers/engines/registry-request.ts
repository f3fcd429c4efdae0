import { posix } from 'node:path';
import { isDigest } from '../../allowed-images/reference.ts';

/** What a request to a registry is about. */
export type RegistryRequest =
  /** Somebody wants to know or have an image. Exactly one of tag and digest is there. */
  | { wants: 'manifest'; repository: string; tag?: string; digest?: string }
  /** Content by its digest: layers, and the configuration of an image. */
  | { wants: 'blob'; repository: string }
  /** Anything else of the registry's interface: its version, lists of tags, writes. */
  | { wants: 'other' }
  /** Not a path of that interface. */
  | { wants: 'unknown' }
  /** A path of that interface in a spelling that a server may read in another way than we do. */
  | { wants: 'unclear' };

/** Reads `/v2/REPOSITORY/manifests/REFERENCE` and the like. A repository may itself have parts of these names, so the last counts. */
export function registryRequest(method: string, path: string): RegistryRequest {
  const decoded = decode(path);
  if (decoded === undefined) return { wants: 'unclear' };
  const plain = posix.normalize(decoded).replace(/^\/+/, '/');
  if (!/^\/v2(?:\/|$)/.test(plain)) return { wants: 'unknown' };
  if (plain !== decoded) return { wants: 'unclear' };
  const parts = decoded.slice('/v2/'.length).split('/');
  const reading = method === 'GET' || method === 'HEAD';
  const [kind, reference = ''] = parts.slice(-2);
  const repository = parts.slice(0, -2).join('/');
  if (!reading || repository === '') return { wants: 'other' };
  if (kind === 'manifests') {
    const digest = reference.toLowerCase();
    return { wants: 'manifest', repository, ...(isDigest(digest) ? { digest } : { tag: reference }) };
  }
  // A push asks with HEAD whether a layer is there already.
  return kind === 'blobs' && method === 'GET' ? { wants: 'blob', repository } : { wants: 'other' };
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
