import { createHash } from 'node:crypto';
import { isObject, type JsonValue, parseJson } from '../../json.ts';

/** Files of an image, by role. */
export const IMAGE_FILES = ['kernel', 'initrd', 'disk'] as const;
export type ImageFile = (typeof IMAGE_FILES)[number];

/** One file of an image. */
export interface StoredFile {
  /** File name, in the directory of the manifest. */
  name: string;
  bytes: number;
  /** Lower-case hexadecimal. */
  sha256: string;
}

/** A Debian package in an image. */
export interface ImagePackage {
  name: string;
  version: string;
  /** SHA-256 of the package file; lower-case hexadecimal. */
  sha256: string;
}

/** The inputs that an image was built from. */
interface ImageSource {
  /** Debian suite: `trixie`. */
  suite: string;
  /** Kernel flavor: `cloud`. */
  kernel: string;
  /** SHA-256 of the files and scripts that rdctl added; lower-case hexadecimal. */
  recipe: string;
  /** All installed packages, sorted by name. */
  packages: readonly ImagePackage[];
}

/** A guest image as described by its `manifest.json`. */
export interface ImageManifest {
  format: 1;
  /** Display name: `debian-13`. */
  name: string;
  /** Name of the architecture as `uname -m` prints it. */
  architecture: string;
  /** RFC 3339. */
  created: string;
  /** Size of the root disk that the guest sees. */
  rootBytes: number;
  /** Optional features, such as `9p` in its kernel; absent when there are none. */
  features?: readonly string[];
  /** Absent from images of releases that did not record it. */
  source?: ImageSource;
  files: Readonly<Record<ImageFile, StoredFile>>;
}

/** An image in the store. */
export interface GuestImage extends ImageManifest {
  /** `sha256:` and the digest of the manifest, which contains the digests of all files: identifies exactly this image. */
  digest: string;
  /** Directory of its files. */
  directory: string;
}

/** Returns the canonical text from which an image's digest is computed. */
export function manifestText(manifest: ImageManifest): string {
  const { format, name, architecture, created, rootBytes, features = [], source, files } = manifest;
  // Omitted when absent, so that older images keep their digests.
  const optional = {
    ...(features.length > 0 ? { features } : {}),
    ...(source ? { source: orderSource(source) } : {}),
  };
  const ordered = Object.fromEntries(IMAGE_FILES.map((file) => [file, files[file]]));
  return `${JSON.stringify({ format, name, architecture, created, rootBytes, ...optional, files: ordered }, undefined, 2)}\n`;
}

function orderSource({ suite, kernel, recipe, packages }: ImageSource): ImageSource {
  return { suite, kernel, recipe, packages: packages.map(({ name, version, sha256 }) => ({ name, version, sha256 })) };
}

/** Returns `sha256:HEX` of a manifest's text. */
export function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Parses a manifest, or returns the reason that it is invalid, as a clause. */
export function parseManifest(text: string): ImageManifest | { problem: string } {
  const value = parseJson(text);
  if (!isObject(value)) return { problem: 'it is not a JSON object' };
  if (value.format !== 1)
    return { problem: `its format is ${JSON.stringify(value.format ?? null)}, and only 1 is supported` };
  const { name, architecture, created, rootBytes, features = [], source, files } = value;
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name))
    return { problem: 'its name is missing or invalid' };
  if (typeof architecture !== 'string' || !/^[a-z0-9_]{1,20}$/.test(architecture))
    return { problem: 'it has no architecture' };
  if (typeof created !== 'string' || Number.isNaN(Date.parse(created)))
    return { problem: 'it has no time of creation' };
  if (!isSize(rootBytes)) return { problem: 'it has no size of the root disk' };
  if (!Array.isArray(features) || !features.every(isWord)) return { problem: 'its features are not a list of words' };
  const from = source === undefined ? undefined : parseSource(source);
  if (source !== undefined && from === undefined) return { problem: 'its source is invalid' };
  const read = isObject(files) ? IMAGE_FILES.map((file) => parseStoredFile(files[file])) : [];
  const [kernel, initrd, disk] = read;
  if (!kernel || !initrd || !disk)
    return { problem: `it does not name ${IMAGE_FILES.join(', ')} with size and sha256` };
  const optional = { ...(features.length > 0 ? { features } : {}), ...(from ? { source: from } : {}) };
  return { format: 1, name, architecture, created, rootBytes, ...optional, files: { kernel, initrd, disk } };
}

function parseSource(value: JsonValue): ImageSource | undefined {
  if (!isObject(value)) return undefined;
  const { suite, kernel, recipe, packages } = value;
  if (!isWord(suite) || !isWord(kernel) || !isSha256(recipe)) return undefined;
  if (!Array.isArray(packages)) return undefined;
  const list: unknown[] = packages;
  return list.every(isPackage) ? orderSource({ suite, kernel, recipe, packages: list }) : undefined;
}

/** True for a package with a name and version as Debian writes them. */
export function isPackage(value: unknown): value is ImagePackage {
  if (!isObject(value)) return false;
  const { name, version, sha256 } = value;
  return (
    typeof name === 'string' &&
    /^[a-z0-9][a-z0-9+.-]{1,127}$/.test(name) &&
    typeof version === 'string' &&
    /^[A-Za-z0-9.+~:-]{1,127}$/.test(version) &&
    isSha256(sha256)
  );
}

function isWord(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9.-]{0,62}$/.test(value);
}

function isSha256(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

function parseStoredFile(value: JsonValue | undefined): StoredFile | undefined {
  if (!isObject(value)) return undefined;
  const { name, bytes, sha256 } = value;
  // The names must not lead out of the image directory.
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name) || name === 'manifest.json')
    return undefined;
  if (!isSize(bytes) || !isSha256(sha256)) return undefined;
  return { name, bytes, sha256 };
}

function isSize(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/**
 * Returns the image that a machine boots, among those of its architecture: the selected one, otherwise its current one, otherwise the newest. If that
 * one lacks `feature`, the newest that has it. Data is on a separate disk, so changing the image costs only a reboot.
 * @param all newest first.
 * @param selected its digest.
 * @param current digest of the image that the machine booted last.
 */
export function imageToBoot<Image extends Pick<GuestImage, 'architecture' | 'digest' | 'features'>>(
  all: readonly Image[],
  {
    architecture,
    selected,
    current,
    feature,
  }: {
    architecture: string | undefined;
    selected: string | undefined;
    current: string | undefined;
    feature?: string | undefined;
  },
): Image | undefined {
  const known = all.filter((image) => image.architecture === architecture);
  const find = (wantedDigest: string | undefined) => known.find(({ digest }) => digest === wantedDigest);
  const image = find(selected) ?? find(current) ?? known[0];
  if (feature === undefined || image?.features?.includes(feature)) return image;
  return known.find(({ features }) => features?.includes(feature)) ?? image;
}
