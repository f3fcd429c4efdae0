import { snapshotCalls } from '../../../src/client/snapshots.ts';
import type { SnapshotRecord } from '../../../src/features/snapshots/contract.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';
import { OUTPUT_FLAG } from '../../views/choose.ts';
import { snapshotTable } from '../../views/snapshot-table.ts';
import { JSON_FLAG, jsonLine, reporting, snapshotClient } from './service.ts';
import { storedSnapshots } from './stored.ts';

export const snapshotList = defineCommand({
  name: 'snapshot list',
  aliases: ['ls'],
  summary: 'List the snapshots, oldest first',
  usage: '',
  description: `--json prints one object per line, with \`created\`, \`name\` and \`description\`; -o json prints them as one list.
Directories that hold no complete snapshot are passed over, with a notice.`,
  flags: { ...JSON_FLAG, output: OUTPUT_FLAG },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'snapshot list');
    return reporting(flags.json ?? false, io, async () => {
      const client = await snapshotClient(invocation);
      // The API does not report skipped snapshots; the files of this home do.
      const isHere = !client || client.connection.file === homeOf(io).connectionFile;
      const stored = isHere ? await storedSnapshots(io) : [];
      const records = client ? await snapshotCalls(client).list(io.signal) : stored;
      if (flags.output === 'json') io.out(`${JSON.stringify(records.map(recordOf), null, 2)}\n`);
      else if (flags.json) for (const record of records) io.out(`${jsonLine(recordOf(record))}\n`);
      else if (records.length === 0) io.err('No snapshots present.\n');
      else io.out(snapshotTable(records));
    });
  },
});

/** Key order that scripts rely on. */
function recordOf({ created, name, description }: SnapshotRecord): SnapshotRecord {
  return { created, name, description };
}
