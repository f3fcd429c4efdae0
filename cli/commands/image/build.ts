import { RdError } from '../../../src/errors.ts';
import { sizeText } from '../../../src/os/size.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';
import { imageRecord, ownImages, shortDigest } from './store.ts';

export const imageBuild = defineCommand({
  name: 'image build',
  summary: 'Make a guest image of Debian on this computer',
  usage: '',
  description: `Installs Debian 12 with docker and containerd into a new image, in two minutes or so. It needs Linux with
mmdebstrap, e2fsprogs and qemu-utils, and root or user namespaces (package uidmap). The images that are there stay.
The cloud kernel is small and starts fast; the generic one has drivers for more, 9p among them.
-o json prints {digest, name, architecture, created, bytes, features, directory}.`,
  flags: {
    kernel: { type: 'string', summary: 'Which kernel of Debian; cloud unless told', values: ['cloud', 'generic'] },
    mirror: { type: 'string', summary: 'Base URL of the Debian archive to install from', placeholder: 'URL' },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'image build');
    if (io.platform !== 'linux') {
      throw new RdError('ERR_USAGE', 'guest images are built on Linux only', {
        advice:
          'Build the image on Linux, write it to a file with `rdctl image save`, and get it here with `rdctl image fetch`.',
      });
    }
    const { mirror } = flags;
    if (mirror !== undefined && !/^(?:https?|file|copy):\/\/[!-~]+$/.test(mirror)) {
      throw new RdError('ERR_USAGE', `${JSON.stringify(mirror)} is no address of a Debian archive`, {
        advice: 'Give a base URL, for example http://deb.debian.org/debian.',
      });
    }
    const { buildImage } = await import('../../../src/drivers/guest-images/build.ts');
    const { run } = await import('../../../src/os/run.ts');
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
