import { snapshotCalls } from '../../../src/client/snapshots.ts';
import { exactArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { JSON_FLAG, reporting, snapshotClient } from './service.ts';
import { deleteStored } from './stored.ts';

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
      if (client) await snapshotCalls(client).remove(name);
      else await deleteStored(name, io);
    });
  },
});
