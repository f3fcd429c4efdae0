import { imageInUse } from '../../../src/drivers/guest-images/use.ts';
import { RdError } from '../../../src/errors.ts';
import { usage } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';
import { ownImages, shortDigest } from './store.ts';

export const imageRemove = defineCommand({
  name: 'image remove',
  aliases: ['rm'],
  summary: 'Remove guest images',
  usage: 'IMAGE...',
  description: `An image is given by its name, its digest or the beginning of its digest. One that the machine of this home boots
is removed with --force alone: the next start then makes a new root disk from another image. The data disk stays.`,
  flags: { force: { type: 'boolean', summary: 'Also an image that the machine boots' } },
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
          advice: 'Add --force to remove it all the same; the data disk of the machine stays.',
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
