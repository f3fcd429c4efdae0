import { machineOf } from '../arguments/machine.ts';
import { quote, usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';

const PREFIX = 'machine:';

export const cp = defineCommand({
  name: 'cp',
  summary: 'Copy files between this computer and the virtual machine',
  usage: `SRC DST`,
  description: `One of SRC and DST is in the machine and begins with \`${PREFIX}\`; the other is a path of this computer.
Relative paths in the machine begin in the home directory of its root. A directory is copied with all
that is in it. If DST is a directory, the copy is put into it under its own name; a SRC that ends in \`/.\`
stands for what is in the directory. Otherwise the copy gets the name DST, in a directory that exists.
Existing directories are merged. Symbolic links in a directory remain links. Copies
belong to root in the machine, and to you on this computer, where devices and pipes are left out.
Needs a driver with a virtual machine (qemu).

  rdctl cp ./project ${PREFIX}/srv
  rdctl cp ${PREFIX}/var/log/dpkg.log .`,
  flags: {
    recursive: { type: 'boolean', short: 'r', summary: 'Copy directories, which needs no flag; for limactl users' },
  },
  classic: false,
  async run({ args, io }) {
    const [from, to, ...more] = args;
    if (from === undefined || to === undefined || more.length > 0) {
      throw usage(`cp takes SRC and DST, received ${args.length} argument${args.length === 1 ? '' : 's'}`);
    }
    for (const path of [from, to]) if (path === '') throw usage('SRC and DST must not be empty');
    const isUpload = to.startsWith(PREFIX);
    if (isUpload === from.startsWith(PREFIX)) {
      throw usage(
        `${isUpload ? 'both' : 'neither'} of ${quote(from)} and ${quote(to)} ${isUpload ? 'are' : 'is'} in the machine`,
        `Begin one of them with \`${PREFIX}\`; a local path that begins so is written \`./${PREFIX}…\`.`,
      );
    }
    const { access } = await machineOf(io, 'Copy with `cp`.');
    const { download, upload } = await import('./cp/copy.ts');
    if (isUpload) await upload(from, to.slice(PREFIX.length), access, io);
    else await download(from.slice(PREFIX.length), to, access, io);
    return 0;
  },
});
