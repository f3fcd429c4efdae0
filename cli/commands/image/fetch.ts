import { setTimeout as delay } from 'node:timers/promises';
import { RdError } from '../../../src/errors.ts';
import { usage } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';
import { downloadProgress } from '../../views/download-progress.ts';
import { downloads, imageRecord, ownImages, shortDigest } from './store.ts';

export const imageFetch = defineCommand({
  name: 'image fetch',
  summary: 'Get a guest image from an address',
  usage: 'URL --sha256 SUM',
  description: `Downloads a file that \`rdctl image save\` wrote. A download that breaks off goes on where it was, also in another run.
A file with another sum is deleted; nothing of it is used.
-o json prints {digest, name, architecture, created, bytes, features, directory}.`,
  flags: {
    sha256: { type: 'string', summary: 'Sum of the file, as its publisher gives it', placeholder: 'SUM' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    const [url, ...more] = args;
    if (url === undefined || more.length > 0) throw usage('image fetch takes one address');
    const sha256 = flags.sha256?.toLowerCase().replace(/^sha256:/, '') ?? '';
    if (!/^[0-9a-f]{64}$/.test(sha256)) {
      throw usage('image fetch needs --sha256 with the 64 hexadecimal digits of the file');
    }
    if (!/^https?:\/\/[^\s@]+$/.test(url)) {
      throw new RdError('ERR_USAGE', 'an image is fetched from an address that begins with https:// or http://', {
        advice: 'Addresses with a user and a password are not taken.',
      });
    }
    const { download } = await import('../../../src/os/download.ts');
    const { addArchive } = await import('../../../src/drivers/guest-images/archive.ts');
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
