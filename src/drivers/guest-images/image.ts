import { createHash } from 'node:crypto';
import { isObject, type JsonValue, parseJson } from '../../json.ts';

/** Files of an image, by role. */
export const IMAGE_FILES = ['kernel', 'initrd', 'disk'] as const;
export type ImageFile = (typeof IMAGE_FILES)[number];

/** One file of an image. */
export interface StoredFile {
  /** Beside the manifest. */
  name: string;
  bytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
}

/** A guest image as described by its `manifest.json`. */
export interface ImageManifest {
  format: 1;
  /** Display name: `debian-12`. */
  name: string;
  /** As `uname -m` prints it. */
  architecture: string;
  /** RFC 3339. */
  created: string;
  /** Size of the root disk that the guest sees. */
  rootBytes: number;
  /** Optional features, such as `9p` in its kernel; absent when there are none. */
  features?: readonly string[];
  files: Readonly<Record<ImageFile, StoredFile>>;
}

/** An image in the store. */
export interface GuestImage extends ImageManifest {
  /** `sha256:` and the digest of the manifest, which contains the digests of all files: identifies exactly this image. */
  digest: string;
  /** Where its files are. */
  directory: string;
}

/** The canonical text from which an image's digest is computed. */
export function manifestText(manifest: ImageManifest): string {
  const { format, name, architecture, created, rootBytes, features = [], files } = manifest;
  // Omitted when empty, so that images older than features keep their digests.
  const special = features.length > 0 ? { features } : {};
  const ordered = Object.fromEntries(IMAGE_FILES.map((file) => [file, files[file]]));
  return `${JSON.stringify({ format, name, architecture, created, rootBytes, ...special, files: ordered }, undefined, 2)}\n`;
}

/** `sha256:HEX` of a manifest's text. */
export function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Parses a manifest; returns why it is invalid, as a clause. */
export function parseManifest(text: string): ImageManifest | { problem: string } {
  const value = parseJson(text);
  if (!isObject(value)) return { problem: 'it is not a JSON object' };
  if (value.format !== 1)
    return { problem: `its format is ${JSON.stringify(value.format ?? null)}, and only 1 is supported` };
  const { name, architecture, created, rootBytes, features = [], files } = value;
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name))
    return { problem: 'its name is missing or invalid' };
  if (typeof architecture !== 'string' || !/^[a-z0-9_]{1,20}$/.test(architecture))
    return { problem: 'it has no architecture' };
  if (typeof created !== 'string' || Number.isNaN(Date.parse(created)))
    return { problem: 'it has no time of creation' };
  if (!isSize(rootBytes)) return { problem: 'it has no size of the root disk' };
  if (!Array.isArray(features) || !features.every(isFeature))
    return { problem: 'its features are not a list of words' };
  const read = isObject(files) ? IMAGE_FILES.map((file) => storedFile(files[file])) : [];
  const [kernel, initrd, disk] = read;
  if (!kernel || !initrd || !disk)
    return { problem: `it does not name ${IMAGE_FILES.join(', ')} with size and sha256` };
  const special = features.length > 0 ? { features } : {};
  return { format: 1, name, architecture, created, rootBytes, ...special, files: { kernel, initrd, disk } };
}

function isFeature(value: JsonValue): value is string {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9.-]{0,62}$/.test(value);
}

function storedFile(value: JsonValue | undefined): StoredFile | undefined {
  if (!isObject(value)) return undefined;
  const { name, bytes, sha256 } = value;
  // A name never leads out of the directory.
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name) || name === 'manifest.json')
    return undefined;
  if (!isSize(bytes) || typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  return { name, bytes, sha256 };
}

function isSize(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}
