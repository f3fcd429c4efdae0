import { sizeText } from '../../../src/os/size.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';
import { imageRecord, ownImages, shortDigest } from './store.ts';

export const imageList = defineCommand({
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
    if (images.length === 0) io.err('There is no guest image. Make one with `rdctl image build`.\n');
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
