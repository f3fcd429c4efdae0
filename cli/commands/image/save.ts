import { usage } from '../../arguments/arguments.ts';
import { outFilePath } from '../../arguments/out-file.ts';
import { defineCommand } from '../../command.ts';
import { ownImages } from './store.ts';

export const imageSave = defineCommand({
  name: 'image save',
  summary: 'Write a guest image to a file',
  usage: 'IMAGE --out-file FILE',
  description: `Writes a tar archive that \`rdctl image fetch\` takes, and prints its sum for --sha256. The same image always gives the same
file.`,
  flags: { 'out-file': { type: 'string', summary: 'The file to write', placeholder: 'FILE' } },
  classic: false,
  async run({ flags, args, io }) {
    const [wanted, ...more] = args;
    if (wanted === undefined || more.length > 0) throw usage('image save takes one image');
    const name = flags['out-file'];
    if (name === undefined) throw usage('image save needs --out-file FILE');
    const path = outFilePath(name, io);
    const store = ownImages(io);
    const image = await store.find(wanted);
    await store.verify(image, io.signal);
    const { saveArchive } = await import('../../../src/drivers/guest-images/archive.ts');
    const sha256 = await saveArchive(image, path, io.signal);
    io.out(`sha256:${sha256}\n`);
    return 0;
  },
});
