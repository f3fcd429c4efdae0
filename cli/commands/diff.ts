import { noArguments } from '../arguments.ts';
import { defineCommand } from '../command.ts';
import { desiredOf } from '../desired.ts';
import { planFor } from '../planning.ts';
import { runningService } from '../service.ts';
import { OUTPUT_FLAG, viewFor } from '../views/choose.ts';

export const diff = defineCommand({
  name: 'diff',
  summary: 'Show where the desktop differs from a profile',
  usage: '-f FILE...',
  description: `Compares only what the profile mentions; different spellings of one value are equal.
With no service running it compares with the stored settings.
Exit codes: 0 no difference; 2 there are differences; 3 the profile is invalid or the target is not ours; 1 failed.`,
  flags: {
    file: {
      type: 'strings',
      short: 'f',
      summary: 'Profile or settings file, - for standard input; later files win',
      placeholder: 'FILE',
    },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'diff');
    const view = viewFor(flags.output, io);
    const desired = await desiredOf(flags.file, io, view);
    const compared = await planFor(desired, await runningService(invocation), io);
    view.diff(compared);
    return compared.changes.length > 0 ? 2 : 0;
  },
});
