import { usage } from '../../arguments.ts';
import { defineCommand } from '../../command.ts';
import { ownImages, shortDigest } from '../../image-store.ts';

export const imageRemove = defineCommand({
  name: 'image remove',
  aliases: ['rm'],
  summary: 'Remove guest images',
  usage: 'IMAGE...',
  description: 'An image is given by its name, its digest or the beginning of its digest.',
  flags: {},
  classic: false,
  async run({ args, io }) {
    if (args.length === 0) throw usage('image remove takes at least one image');
    const store = ownImages(io);
    // All of them are found before any is removed.
    const images = [];
    for (const wanted of args) images.push(await store.find(wanted));
    for (const image of images) {
      await store.remove(image);
      io.err(`Removed ${shortDigest(image)} ${image.name}.\n`);
    }
    return 0;
  },
});
