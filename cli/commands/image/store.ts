import { join } from 'node:path';
import { type GuestImage, IMAGE_FILES } from '../../../src/guest-images/image.ts';
import { type ImageStore, imageStore } from '../../../src/guest-images/store.ts';
import type { Io } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';

/** The guest images of this home. */
export function ownImages(io: Io): ImageStore {
  return imageStore(homeOf(io).guestImages);
}

/** Where downloads that were not finished are kept. */
export function downloads(io: Io): string {
  return join(homeOf(io).cache, 'downloads');
}

/** What `-o json` shows of an image. */
export interface ImageRecord {
  digest: string;
  name: string;
  architecture: string;
  /** RFC 3339. */
  created: string;
  /** Of all its files. */
  bytes: number;
  /** What it has that not every image has. */
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

/** The part of a digest that people read and type. */
export function shortDigest({ digest }: Pick<GuestImage, 'digest'>): string {
  return digest.slice(7, 19);
}
