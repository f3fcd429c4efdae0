import { snapshotCalls } from '../../../src/client/snapshots.ts';
import { exactArguments } from '../../arguments.ts';
import { defineCommand } from '../../command.ts';
import { JSON_FLAG, operate, reporting, snapshotClient } from '../../snapshot-service.ts';
import { checkStored } from '../../stored-snapshots.ts';

export const snapshotDelete = defineCommand({
  name: 'snapshot delete',
  summary: 'Delete a snapshot',
  usage: 'NAME',
  description: 'What runs is not touched.',
  flags: JSON_FLAG,
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    exactArguments(args, 1);
    const [name = ''] = args;
    const json = flags.json ?? false;
    return reporting(json, io, async () => {
      const client = await snapshotClient(invocation);
      if (client) return snapshotCalls(client).remove(name);
      await checkStored(name, 'delete', io);
      await operate(undefined, {
        caller: invocation,
        json,
        cancelling: 'A deletion that has begun goes on...',
        work: (calls) => calls.remove(name),
      });
    });
  },
});
