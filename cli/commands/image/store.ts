import { join } from 'node:path';
import { type GuestImage, IMAGE_FILES } from '../../../src/drivers/guest-images/image.ts';
import { type ImageStore, imageStore } from '../../../src/drivers/guest-images/store.ts';
import type { Io } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';

/** The guest images stored in this home. */
export function ownImages(io: Io): ImageStore {
  return imageStore(homeOf(io).guestImages);
}

/** Where unfinished downloads are kept. */
export function downloads(io: Io): string {
  return join(homeOf(io).cache, 'downloads');
}

/** An image in `-o json`. */
export interface ImageRecord {
  digest: string;
  name: string;
  architecture: string;
  /** RFC 3339. */
  created: string;
  /** Total size of its files. */
  bytes: number;
  /** Optional features of the image. */
  features: readonly string[];
  directory: string;
}

export function imageRecord({
  digest,
  name,
  architecture,
  created,
  files,
  features = [],
  directory,
}: GuestImage): ImageRecord {
  const bytes = IMAGE_FILES.reduce((sum, file) => sum + files[file].bytes, 0);
  return { digest, name, architecture, created, bytes, features, directory };
}

/** The short form of a digest for display and input. */
export function shortDigest({ digest }: Pick<GuestImage, 'digest'>): string {
  return digest.slice(7, 19);
}
