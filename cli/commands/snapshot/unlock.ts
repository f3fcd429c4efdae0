import { requireAdopted } from '../../../src/state/adoption.ts';
import { backendLock } from '../../../src/state/backend-lock.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';
import { JSON_FLAG, reporting } from './service.ts';

export const snapshotUnlock = defineCommand({
  name: 'snapshot unlock',
  summary: 'Remove the lock of a snapshot operation that is no more',
  usage: '',
  description: `While the lock file is there, a service that starts keeps its backend off, and no snapshot is taken or restored.
Operations of a service of rdctl end with their lock, also when the service was killed.`,
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
          `notice: the service (pid ${facts.holder.pid}) is still at work: ${facts.action ?? 'it does not say what'}\n`,
        );
      }
    });
  },
});
