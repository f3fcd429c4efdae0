import { requireNamed } from '../../src/client/session/find.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { snapshotCalls } from '../../src/client/snapshots.ts';
import type { SnapshotRecord } from '../../src/features/snapshots/contract.ts';
import { checkName, quoted } from '../../src/features/snapshots/name.ts';
import { backendLock } from '../../src/state/backend-lock.ts';
import { requireAdopted } from '../../src/state/drop-in.ts';
import { noArguments, oneArgument } from '../arguments/arguments.ts';
import { readInput } from '../arguments/files.ts';
import { TARGET_FLAG } from '../arguments/shared-flags.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { defineGroup } from '../group.ts';
import { askYes } from '../views/consent.ts';
import { jsonText, plainText, tableLines } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import {
  checkListed,
  checkStored,
  deleteStored,
  JSON_FLAG,
  jsonLine,
  operate,
  printInterruption,
  printNotReady,
  reporting,
  snapshotServer,
  storedSnapshots,
} from './snapshot/operation.ts';

const snapshotCreate = defineCommand({
  name: 'snapshot create',
  summary: 'Save the settings and all data of the backend',
  usage: 'NAME',
  description: `A virtual machine keeps running: the copy is taken at a single point in time. With other backends, and with --stop,
the backend is stopped while its data is copied; the command returns when it is running again. If
the file system supports copy-on-write, the copy takes no space until data changes. Ctrl-C rolls back before exiting.

  rdctl snapshot create before-upgrade --description "k3s 1.29, all green"`,
  flags: {
    ...JSON_FLAG,
    description: { type: 'string', summary: 'Description of the snapshot', placeholder: 'TEXT' },
    'description-from': {
      type: 'string',
      summary: 'File with the description, or `-` for standard input',
      placeholder: 'FILE',
    },
    stop: { type: 'boolean', summary: 'Stop the backend, even if it could keep running' },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const name = oneArgument(args);
    const from = flags['description-from'];
    if (flags.description && from) {
      throw usage('can\'t specify more than one option from "--description" and "--description-from"');
    }
    const description = !from ? (flags.description ?? '') : (await readInput(from, io)).toString('utf8');
    const json = flags.json ?? false;
    return reporting(json, io, async () => {
      checkName(name);
      const server = await snapshotServer(invocation);
      const stop = flags.stop ?? false;
      if (server && !json) await printInterruption(server, { do: 'create', name, stop }, io);
      await operate(server, {
        caller: invocation,
        json,
        cancelling: 'Cancelling snapshot creation...',
        cutOff: {
          message: 'failed to create snapshot',
          advice: 'The next start of the service removes the incomplete copy: `rdctl start`.',
        },
        work: (calls) => calls.create(name, description, { stop }),
      });
      if (server && !json) await printNotReady(server, io);
    });
  },
});

const snapshotDelete = defineCommand({
  name: 'snapshot delete',
  summary: 'Delete a snapshot',
  usage: 'NAME',
  description: `Does not affect the running desktop.

  rdctl snapshot delete before-upgrade`,
  flags: JSON_FLAG,
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const name = oneArgument(args);
    return reporting(flags.json ?? false, io, async () => {
      const server = await snapshotServer(invocation);
      if (server) await snapshotCalls(server.client).remove(name);
      else await deleteStored(name, io);
    });
  },
});

const snapshotList = defineCommand({
  name: 'snapshot list',
  aliases: ['ls'],
  summary: 'List the snapshots, oldest first',
  usage: '',
  description: `--json prints one object per line, with \`created\`, \`name\` and \`description\`; -o json prints them as one list.
One that was not made in this home has \`foreign\` as well, and brings a column ORIGIN into the table.
Incomplete snapshots are skipped, with a notice.

  rdctl snapshot list`,
  flags: { ...JSON_FLAG, output: OUTPUT_FLAG },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'snapshot list');
    return reporting(flags.json ?? false, io, async () => {
      const server = await snapshotServer(invocation);
      // The API does not report skipped snapshots; the files of this home do.
      const isHere = !server || server.client.connection.file === homeOf(io).connectionFile;
      const stored = isHere ? await storedSnapshots(io) : [];
      const records = server ? await snapshotCalls(server.client).list(io.signal) : stored;
      if (flags.output === 'json') io.out(jsonText(records.map(recordOf)));
      else if (flags.json) for (const record of records) io.out(`${jsonLine(recordOf(record))}\n`);
      else if (records.length === 0) io.err('No snapshots present.\n');
      else io.out(snapshotTable(records));
    });
  },
});

/** Key order that scripts rely on. */
function recordOf({ created, name, description, foreign }: SnapshotRecord): SnapshotRecord {
  return { created, name, description, ...(foreign ? { foreign } : {}) };
}

const snapshotRestore = defineCommand({
  name: 'snapshot restore',
  summary: 'Restore a snapshot',
  usage: 'NAME',
  description: `Restores the settings and all data of the backend. The snapshot is verified first, then copied
next to the current state. The replaced state is kept until the restored one is running; if that fails, or
on Ctrl-C, it is put back automatically. On a terminal, the command asks for confirmation.
What is in a snapshot can run its containers with the rights of the engine, so one that was not made in
this home is restored only with --foreign.

  rdctl snapshot restore before-upgrade`,
  flags: {
    ...JSON_FLAG,
    foreign: { type: 'boolean', summary: 'Restore it even if it was not made in this home' },
    yes: { type: 'boolean', short: 'y', summary: 'Do not ask' },
    target: TARGET_FLAG,
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    const name = oneArgument(args);
    const json = flags.json ?? false;
    const foreign = flags.foreign ?? false;
    return reporting(json, io, async () => {
      const server = await snapshotServer(invocation);
      // An application that was merely found must not be overwritten by accident (docs/drop-in.md).
      if (server?.client.connection.foreign)
        requireNamed('snapshot restore …', server.client.connection, flags.target, invocation);
      if (server) await checkListed(server.client, name, foreign, io);
      else await checkStored(name, foreign, io);
      if (server && !json) await printInterruption(server, { do: 'restore', name, stop: true }, io);
      if (io.interactive && !flags.yes && !json) {
        await askYes(
          `This replaces the current settings, images, containers, volumes and cluster with those of ${quoted(name)}${foreign ? ', which can run its containers with the rights of the engine' : ''}`,
          io,
        );
      }
      await operate(server, {
        caller: invocation,
        json,
        cancelling: 'Cancelling snapshot restoration...',
        cutOff: {
          message: `failed to restore snapshot ${quoted(name)}`,
          advice: 'The next start of the service completes the restore, or rolls it back: `rdctl start`.',
        },
        work: (calls) => calls.restore(name, { foreign }),
      });
    });
  },
});

const snapshotUnlock = defineCommand({
  name: 'snapshot unlock',
  summary: 'Remove the lock of a snapshot operation that has ended',
  usage: '',
  description: `While the lock file exists, a service that starts does not start its backend, and snapshots cannot be created or
restored. The service removes its lock when an operation ends, and replaces the lock of a killed service.

  rdctl snapshot unlock`,
  flags: JSON_FLAG,
  classic: true,
  async run({ flags, args, io }) {
    noArguments(args, 'snapshot unlock');
    return reporting(flags.json ?? false, io, async () => {
      const here = homeOf(io);
      await requireAdopted(here);
      const lock = backendLock(here.backendLock);
      const facts = await lock.read();
      await lock.remove();
      if (facts?.holder && !facts.abandoned && !flags.json) {
        io.err(
          `notice: the service (pid ${facts.holder.pid}) is still working: ${facts.action ?? 'unknown operation'}\n`,
        );
      }
    });
  },
});

export const snapshot = defineGroup({
  name: 'snapshot',
  summary: 'Save and restore the entire desktop',
  description: `A snapshot contains the settings and all data of the backend: images, containers, volumes, the cluster.
These commands work with or without a running service.`,
  flags: JSON_FLAG,
  classic: true,
  subcommands: [snapshotCreate, snapshotDelete, snapshotList, snapshotRestore, snapshotUnlock],
});

const GAP = 4;
const MAX_DESCRIPTION = 63;

/** Formats the table of `snapshot list` in the layout of Rancher Desktop's `rdctl`, with one more column only if a snapshot is from elsewhere. */
export function snapshotTable(records: readonly SnapshotRecord[]): string {
  const hasForeign = records.some(({ foreign }) => foreign);
  const origin = ({ foreign }: SnapshotRecord) => (hasForeign ? [foreign ? 'another home' : 'this home'] : []);
  const rows = [
    ['NAME', 'CREATED', 'DESCRIPTION', ...(hasForeign ? ['ORIGIN'] : [])],
    ...records.map((record) => [
      ...[plainText(record.name), localTime(record.created), firstLine(record.description)],
      ...origin(record),
    ]),
  ];
  return `${tableLines(rows, GAP).join('\n')}\n`;
}

/** Formats a time in the local time zone: `Sat, 21 Nov 2026 09:39:22 UTC`. */
export function localTime(created: string): string {
  const date = new Date(created);
  if (Number.isNaN(date.getTime())) return plainText(created);
  const parts = new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    day: '2-digit',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).formatToParts(date);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value ?? '';
  return `${part('weekday')}, ${part('day')} ${part('month')} ${part('year')} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')}`;
}

function firstLine(description: string): string {
  const text = description.trim();
  const [line = ''] = text.split('\n', 1);
  const points = [...plainText(line)];
  if (line === text && points.length <= MAX_DESCRIPTION) return points.join('');
  return `${points.slice(0, MAX_DESCRIPTION - 1).join('')}…`;
}
