import { quoted } from '../../../src/features/snapshots/name.ts';
import { COMPATIBLE } from '../../../src/product.ts';
import { exactArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { askYes } from '../../views/consent.ts';
import { checkTarget, JSON_FLAG, operate, printInterruption, reporting, snapshotClient } from './service.ts';
import { checkStored } from './stored.ts';

export const snapshotRestore = defineCommand({
  name: 'snapshot restore',
  summary: 'Go back to a snapshot',
  usage: 'NAME',
  description: `Settings and everything that the backend keeps become what they were. The snapshot is verified first, and copied
beside the present state; what is replaced is kept until the restored state runs, and comes back by
itself when it does not, or on Ctrl-C. A person at a terminal is asked before anything begins.`,
  flags: {
    ...JSON_FLAG,
    yes: { type: 'boolean', short: 'y', summary: 'Ask nothing' },
    target: {
      type: 'string',
      summary: 'Restore the compatible application that was found',
      values: [COMPATIBLE.target],
    },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    exactArguments(args, 1);
    const [name = ''] = args;
    const json = flags.json ?? false;
    return reporting(json, io, async () => {
      const client = await snapshotClient(invocation);
      checkTarget(client, flags.target, invocation);
      if (!client) await checkStored(name, io);
      if (client && !json) await printInterruption(client, { do: 'restore', name, stop: true }, io);
      if (io.interactive && !flags.yes && !json) {
        await askYes(
          `Settings, images, containers, volumes and the cluster of now are replaced by those of ${quoted(name)}. Go on?`,
          io,
        );
      }
      await operate(client, {
        caller: invocation,
        json,
        cancelling: 'Cancelling snapshot restoration...',
        cutOff: {
          message: `failed to restore snapshot ${quoted(name)}`,
          advice: 'The next start of the service completes the restore, or puts everything back: `rdctl start`.',
        },
        work: (calls) => calls.restore(name),
      });
    });
  },
});
