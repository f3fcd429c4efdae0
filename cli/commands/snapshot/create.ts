import { checkName } from '../../../src/features/snapshots/name.ts';
import { exactArguments, usage } from '../../arguments/arguments.ts';
import { readInput } from '../../arguments/input.ts';
import { defineCommand } from '../../command.ts';
import { JSON_FLAG, operate, printInterruption, printNotReady, reporting, snapshotClient } from './service.ts';

export const snapshotCreate = defineCommand({
  name: 'snapshot create',
  summary: 'Save the settings and everything that the backend keeps',
  usage: 'NAME',
  description: `A virtual machine goes on while it is copied, as it is at one moment. Of every other backend, and with --stop,
the data is copied while it is stopped; the command returns when it is again what it is to be. Where
the file system can share blocks, such a copy takes no space until something changes. Ctrl-C undoes
what was begun and waits for it.

  rdctl snapshot create before-upgrade --description "k3s 1.29, all green"`,
  flags: {
    ...JSON_FLAG,
    description: { type: 'string', summary: 'What it is for', placeholder: 'TEXT' },
    'description-from': {
      type: 'string',
      summary: 'File with the description; `-` is standard input',
      placeholder: 'FILE',
    },
    stop: { type: 'boolean', summary: 'Stop the backend meanwhile, even where it could go on' },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    exactArguments(args, 1);
    const [name = ''] = args;
    const from = flags['description-from'];
    if (flags.description !== undefined && from !== undefined) {
      throw usage('only one of --description and --description-from can be given');
    }
    const description = from === undefined ? (flags.description ?? '') : (await readInput(from, io)).toString('utf8');
    const json = flags.json ?? false;
    return reporting(json, io, async () => {
      checkName(name);
      const client = await snapshotClient(invocation);
      const stop = flags.stop ?? false;
      if (client && !json) await printInterruption(client, { do: 'create', name, stop }, io);
      await operate(client, {
        caller: invocation,
        json,
        cancelling: 'Cancelling snapshot creation...',
        cutOff: {
          message: 'failed to create snapshot',
          advice: 'The next start of the service removes what was begun: `rdctl start`.',
        },
        work: (calls) => calls.create(name, description, { stop }),
      });
      if (client && !json) await printNotReady(client, io);
    });
  },
});
