import { homeOf } from '../../../src/client/session/home.ts';
import { guestArchitecture } from '../../../src/drivers/guest-images/architecture.ts';
import { type GuestImage, IMAGE_FILES, imageToBoot } from '../../../src/drivers/guest-images/image.ts';
import { type ImageStore, imageInUse, imageStore } from '../../../src/drivers/guest-images/store.ts';
import { sizeText } from '../../../src/os/size.ts';
import type { Io } from '../../command.ts';
import { jsonText } from '../../views/text.ts';

/** Returns the guest images stored in this home. */
export function ownImages(io: Io): ImageStore {
  return imageStore(homeOf(io).guestImages);
}

/** An image in the output of `-o json`. */
interface ImageRecord {
  digest: string;
  name: string;
  architecture: string;
  /** Time of creation in RFC 3339. */
  created: string;
  /** Total size of its files in bytes. */
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

/** The use of an image by the machine of this home: now, or at its next start. */
interface MachineUse {
  current: boolean;
  next: boolean;
}

/** Returns a function that looks up the use of an image, by its digest. */
export async function machineUse(io: Io, images: readonly GuestImage[]): Promise<(image: GuestImage) => MachineUse> {
  const current = await imageInUse(homeOf(io).state);
  const architecture = guestArchitecture(process.arch);
  const next = imageToBoot(images, { architecture, selected: await ownImages(io).selected(), current });
  return ({ digest }) => ({ current: digest === current, next: digest === next?.digest });
}

/** Formats the column MACHINE. */
export function useText({ current, next }: MachineUse): string {
  if (current) return next ? 'current' : 'until restart';
  return next ? 'next start' : '';
}

/** Prints the record of one image, or its line. */
export function printImage(io: Io, image: GuestImage, output: string | undefined): void {
  const record = imageRecord(image);
  if (output === 'json') io.out(jsonText(record));
  else io.out(`${shortDigest(image)}  ${record.name}  ${sizeText(record.bytes)}\n`);
}

const ENGINES = ['docker.io', 'containerd', 'runc', 'docker-buildx', 'docker-compose'];

/** Returns the versions of the engines, their plugins and the kernel (`linux`); empty when the image does not record its packages. */
export function mainVersions({ source }: GuestImage): { name: string; version: string }[] {
  const packages = source?.packages ?? [];
  return packages.flatMap(({ name, version }) => {
    // The names of kernel packages contain their version.
    if (/^linux-image-\d/.test(name)) return [{ name: 'linux', version }];
    return ENGINES.includes(name) ? [{ name, version }] : [];
  });
}

/** Prints how a selected image gets booted, unless it already is. */
export async function restartHint(io: Io, image: GuestImage): Promise<void> {
  if ((await imageInUse(homeOf(io).state)) === image.digest) return;
  io.err('The machine boots it at its next start: `rdctl shutdown`, then `rdctl start`.\n');
}
