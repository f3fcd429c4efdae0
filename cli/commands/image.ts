import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type GuestImage, IMAGE_FILES } from '../../src/drivers/guest-images/image.ts';
import { type ImageStore, imageInUse, imageStore } from '../../src/drivers/guest-images/store.ts';
import { RdError } from '../../src/errors.ts';
import { sizeText } from '../../src/os/size.ts';
import { noArguments } from '../arguments/arguments.ts';
import { outFilePath } from '../arguments/files.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { homeOf } from '../session/home.ts';
import { downloadProgress } from '../views/progress.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

/** The guest images stored in this home. */
function ownImages(io: Io): ImageStore {
  return imageStore(homeOf(io).guestImages);
}

/** Where unfinished downloads are kept. */
function downloads(io: Io): string {
  return join(homeOf(io).cache, 'downloads');
}

/** An image in `-o json`. */
interface ImageRecord {
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

function imageRecord({
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
function shortDigest({ digest }: Pick<GuestImage, 'digest'>): string {
  return digest.slice(7, 19);
}

const imageBuild = defineCommand({
  name: 'image build',
  summary: 'Build a Debian guest image on this computer',
  usage: '',
  description: `Installs Debian 12 with docker and containerd into a new image, which takes about two minutes. Requires Linux with
mmdebstrap, e2fsprogs and qemu-utils, and root or user namespaces (package uidmap). Existing images stay.
The cloud kernel is small and starts fast; the generic one has more drivers, such as 9p.
-o json prints {digest, name, architecture, created, bytes, features, directory}.`,
  flags: {
    kernel: { type: 'string', summary: 'Debian kernel (default cloud)', values: ['cloud', 'generic'] },
    mirror: { type: 'string', summary: 'Base URL of the Debian archive to install from', placeholder: 'URL' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image build');
    if (io.platform !== 'linux') {
      throw new RdError('ERR_USAGE', 'guest images can only be built on Linux', {
        advice:
          'Build the image on Linux, save it with `rdctl image save`, and download it here with `rdctl image fetch`.',
      });
    }
    const { mirror } = flags;
    if (mirror !== undefined && !/^(?:https?|file|copy):\/\/[!-~]+$/.test(mirror)) {
      throw new RdError('ERR_USAGE', `${JSON.stringify(mirror)} is not the URL of a Debian archive`, {
        advice: 'Give a base URL, for example http://deb.debian.org/debian.',
      });
    }
    const { buildImage } = await import('../../src/drivers/guest-images/build.ts');
    const { run } = await import('../../src/os/run.ts');
    const image = await buildImage({
      asRoot: process.getuid?.() === 0,
      store: ownImages(io),
      run,
      ...(mirror === undefined ? {} : { mirror }),
      kernel: flags.kernel === 'generic' ? 'generic' : 'cloud',
      onPhase: (phase) => io.err(`${phase} …\n`),
      now: Date.now,
      signal: io.signal,
    });
    const record = imageRecord(image);
    if (flags.output === 'json') io.out(`${JSON.stringify(record, null, 2)}\n`);
    else io.out(`${shortDigest(image)}  ${record.name}  ${sizeText(record.bytes)}\n`);
    return 0;
  },
});

const imageFetch = defineCommand({
  name: 'image fetch',
  summary: 'Download a guest image',
  usage: 'URL --sha256 SUM',
  description: `Downloads a file that \`rdctl image save\` wrote. An interrupted download resumes, also in a later run.
A file with a different checksum is deleted and never used.
-o json prints {digest, name, architecture, created, bytes, features, directory}.`,
  flags: {
    sha256: { type: 'string', summary: 'SHA-256 checksum of the file', placeholder: 'SUM' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    const [url, ...more] = args;
    if (url === undefined || more.length > 0) throw usage('image fetch takes one URL');
    const sha256 = flags.sha256?.toLowerCase().replace(/^sha256:/, '') ?? '';
    if (!/^[0-9a-f]{64}$/.test(sha256)) {
      throw usage('image fetch requires --sha256 with the 64 hexadecimal digits of the checksum');
    }
    if (!/^https?:\/\/[^\s@]+$/.test(url)) {
      throw new RdError('ERR_USAGE', 'the URL of an image must begin with https:// or http://', {
        advice: 'URLs with a user name or password are not supported.',
      });
    }
    const { download } = await import('../../src/os/download.ts');
    const { addArchive } = await import('../../src/drivers/guest-images/archive.ts');
    const progress = downloadProgress(io);
    const file = await download({
      url,
      sha256,
      directory: downloads(io),
      fetch,
      onProgress: progress.show,
      onRetry: progress.retry,
      sleep: async (ms, signal) => void (await delay(ms, undefined, { signal })),
      signal: io.signal,
    }).finally(progress.end);
    const image = await addArchive(file.path, ownImages(io), io.signal, url).catch(async (error) => {
      // The checksum matches, so another download cannot help, unless the disk was full.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_TERMINAL') await file.discard();
      throw error;
    });
    await file.discard();
    if (flags.output === 'json') io.out(`${JSON.stringify(imageRecord(image), null, 2)}\n`);
    else io.out(`${shortDigest(image)}  ${image.name}\n`);
    return 0;
  },
});

const imageList = defineCommand({
  name: 'image list',
  aliases: ['ls'],
  summary: 'List the guest images, newest first',
  usage: '',
  description: '-o json prints a list of {digest, name, architecture, created, bytes, features, directory}.',
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image list');
    const images = await ownImages(io).list();
    if (flags.output === 'json') {
      io.out(`${JSON.stringify(images.map(imageRecord), null, 2)}\n`);
      return 0;
    }
    if (images.length === 0) io.err('There are no guest images. Build one with `rdctl image build`.\n');
    else {
      const rows = images.map((image) => {
        const { name, created, bytes } = imageRecord(image);
        return [shortDigest(image), name, created.slice(0, 16).replace('T', ' '), sizeText(bytes)];
      });
      const table = [['DIGEST', 'NAME', 'CREATED (UTC)', 'SIZE'], ...rows];
      const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)) + 2);
      for (const row of table) {
        io.out(`${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('')}\n`);
      }
    }
    return 0;
  },
});

const imageRemove = defineCommand({
  name: 'image remove',
  aliases: ['rm'],
  summary: 'Remove guest images',
  usage: 'IMAGE...',
  description: `Identify an image by its name, its digest, or the beginning of its digest. The image that the machine of this home boots
is only removed with --force; the next start then creates a new root disk from another image. The data disk stays.`,
  flags: { force: { type: 'boolean', summary: 'Also remove an image that the machine boots' } },
  classic: false,
  async run({ flags, args, io }) {
    if (args.length === 0) throw usage('image remove takes at least one image');
    const store = ownImages(io);
    // Resolve all images before removing any.
    const images = [];
    for (const wanted of args) images.push(await store.find(wanted));
    const used = flags.force ? undefined : await imageInUse(homeOf(io).state);
    const needed = images.find(({ digest }) => digest === used);
    if (needed) {
      throw new RdError(
        'ERR_USAGE',
        `the machine of this home boots ${shortDigest(needed)} ${needed.name}; nothing was removed`,
        {
          advice: 'Add --force to remove it anyway; the data disk of the machine stays.',
        },
      );
    }
    for (const image of images) {
      await store.remove(image);
      io.err(`Removed ${shortDigest(image)} ${image.name}.\n`);
    }
    return 0;
  },
});

const imageSave = defineCommand({
  name: 'image save',
  summary: 'Write a guest image to a file',
  usage: 'IMAGE --out-file FILE',
  description: `Writes a tar archive for \`rdctl image fetch\`, and prints its checksum for --sha256. The same image always produces the same
file.`,
  flags: { 'out-file': { type: 'string', summary: 'File to write', placeholder: 'FILE' } },
  classic: false,
  async run({ flags, args, io }) {
    const [wanted, ...more] = args;
    if (wanted === undefined || more.length > 0) throw usage('image save takes one image');
    const name = flags['out-file'];
    if (name === undefined) throw usage('image save requires --out-file FILE');
    const path = outFilePath(name, io);
    const store = ownImages(io);
    const image = await store.find(wanted);
    await store.verify(image, io.signal);
    const { saveArchive } = await import('../../src/drivers/guest-images/archive.ts');
    const sha256 = await saveArchive(image, path, io.signal);
    io.out(`sha256:${sha256}\n`);
    return 0;
  },
});

export const image = defineGroup({
  name: 'image',
  summary: 'Manage guest images for virtual machines',
  description: `A guest image is what a virtual machine boots: a kernel and a disk with Linux and the container engines.
It is identified by the digest of its files, and never changes. The data of a machine is on a separate disk.`,
  flags: {},
  classic: false,
  subcommands: [imageBuild, imageFetch, imageList, imageRemove, imageSave],
});
