import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { homeOf } from '../../src/client/session/home.ts';
import { foreignImage, guestArchitecture } from '../../src/drivers/guest-images/architecture.ts';
import { imageInUse } from '../../src/drivers/guest-images/store.ts';
import { RdError } from '../../src/errors.ts';
import { sizeText } from '../../src/os/size.ts';
import { noArguments, oneArgument } from '../arguments/arguments.ts';
import { outFilePath } from '../arguments/files.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { downloadProgress } from '../views/progress.ts';
import { jsonText, tableLines } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { imageBuild, imageUpgrade } from './image/build.ts';
import {
  imageRecord,
  machineUse,
  mainVersions,
  ownImages,
  printImage,
  restartHint,
  shortDigest,
  useText,
} from './image/record.ts';

/** Returns the directory of unfinished downloads. */
function downloads(io: Io): string {
  return join(homeOf(io).cache, 'downloads');
}

const imageUse = defineCommand({
  name: 'image use',
  summary: 'Select the guest image that the machine boots',
  usage: 'IMAGE',
  description: `Takes effect at the next start of the machine, with a new root disk. The data disk stays. Going back to an older release of
Debian can fail if an engine has changed its data since; take a snapshot before.

  rdctl image use debian-12`,
  flags: {},
  classic: false,
  async run({ args, io }) {
    const store = ownImages(io);
    const image = await store.find(oneArgument(args));
    const own = guestArchitecture(process.arch);
    if (image.architecture !== own) throw foreignImage(image, own);
    await store.select(image);
    io.err(`Selected ${shortDigest(image)} ${image.name}.\n`);
    await restartHint(io, image);
    return 0;
  },
});

const imageShow = defineCommand({
  name: 'image show',
  summary: 'Show what a guest image was built from',
  usage: 'IMAGE',
  description: `Prints the main packages with their versions; -o json prints the record of \`rdctl image list\` and, for an image of a release
that records it, source {suite, kernel, recipe, packages [{name, version, sha256}]} with all packages.

  rdctl image show debian-13`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ flags, args, io }) {
    const store = ownImages(io);
    const image = await store.find(oneArgument(args));
    const use = (await machineUse(io, await store.list()))(image);
    const record = { ...imageRecord(image), ...use, ...(image.source ? { source: image.source } : {}) };
    if (flags.output === 'json') {
      io.out(jsonText(record));
      return 0;
    }
    const rows = [
      ['Digest', image.digest],
      ['Name', image.name],
      ['Architecture', image.architecture],
      ['Created', image.created],
      ['Size', sizeText(record.bytes)],
      ['Machine', useText(use) || 'not used'],
    ];
    if (image.source) {
      const { suite, kernel, packages } = image.source;
      rows.push(['Source', `Debian ${suite}, ${kernel} kernel, ${packages.length} packages`]);
      for (const { name, version } of mainVersions(image)) rows.push([`  ${name}`, version]);
    } else rows.push(['Source', 'not recorded']);
    for (const line of tableLines(rows)) io.out(`${line}\n`);
    return 0;
  },
});

const imageFetch = defineCommand({
  name: 'image fetch',
  summary: 'Download a guest image',
  usage: 'URL --sha256 SUM',
  description: `Downloads a file that \`rdctl image save\` wrote. An interrupted download resumes, also in a later run.
A file with a different checksum is deleted and never used.
-o json prints {digest, name, architecture, created, bytes, features, directory}.

  rdctl image fetch https://example.com/debian-13.tar --sha256 SUM`,
  flags: {
    sha256: { type: 'string', summary: 'SHA-256 checksum of the file', placeholder: 'SUM' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    const url = oneArgument(args);
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
    printImage(io, image, flags.output);
    return 0;
  },
});

const imageList = defineCommand({
  name: 'image list',
  aliases: ['ls'],
  summary: 'List the guest images, newest first',
  usage: '',
  description: `MACHINE shows the image that the machine of this home boots: current, or next start if another one is selected.
-o json prints a list of {digest, name, architecture, created, bytes, features, directory, current, next}.

  rdctl image list`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image list');
    const images = await ownImages(io).list();
    const use = await machineUse(io, images);
    if (flags.output === 'json') {
      io.out(jsonText(images.map((image) => ({ ...imageRecord(image), ...use(image) }))));
      return 0;
    }
    if (images.length === 0) {
      io.err('There are no guest images. Build one with `rdctl image build`.\n');
      return 0;
    }
    const rows = images.map((image) => {
      const { name, architecture, created, bytes } = imageRecord(image);
      return [
        shortDigest(image),
        name,
        architecture,
        created.slice(0, 16).replace('T', ' '),
        sizeText(bytes),
        useText(use(image)),
      ];
    });
    const table = tableLines([['DIGEST', 'NAME', 'ARCHITECTURE', 'CREATED (UTC)', 'SIZE', 'MACHINE'], ...rows]);
    for (const line of table) io.out(`${line.trimEnd()}\n`);
    return 0;
  },
});

const imageRemove = defineCommand({
  name: 'image remove',
  aliases: ['rm'],
  summary: 'Remove guest images',
  usage: 'IMAGE...',
  description: `Identify an image by its name, its digest, or the beginning of its digest. The image that the machine of this home boots,
now or at its next start, is only removed with --force; the next start then creates a new root disk from another image.
The data disk stays.

  rdctl image remove debian-12`,
  flags: { force: { type: 'boolean', summary: 'Also remove the image that the machine boots' } },
  classic: false,
  async run({ flags, args, io }) {
    if (args.length === 0) throw usage('image remove takes at least one image');
    const store = ownImages(io);
    // Resolve all images before removing any.
    const images = [];
    for (const reference of args) images.push(await store.find(reference));
    const used = flags.force ? [] : [await imageInUse(homeOf(io).state), await store.selected()];
    const needed = images.find(({ digest }) => used.includes(digest));
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
file.

  rdctl image save debian-13 --out-file debian-13.tar`,
  flags: { 'out-file': { type: 'string', summary: 'File to write', placeholder: 'FILE' } },
  classic: false,
  async run({ flags, args, io }) {
    const reference = oneArgument(args);
    const name = flags['out-file'];
    if (name === undefined) throw usage('image save requires --out-file FILE');
    const path = outFilePath(name, io);
    const store = ownImages(io);
    const image = await store.find(reference);
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
  subcommands: [imageBuild, imageFetch, imageList, imageRemove, imageSave, imageShow, imageUpgrade, imageUse],
});
