import { RdError } from '../../src/errors.ts';
import { noArguments } from '../arguments/arguments.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';
import { defineGroup } from '../group.ts';

const waitKill = defineCommand({
  name: 'internal process wait-kill',
  summary: 'Wait for a process to exit, then kill its process group',
  usage: '',
  description: 'Used by the application alongside a process it starts. Linux only.',
  flags: { pid: { type: 'integer', summary: 'Process ID; 0 does nothing' } },
  classic: true,
  async run({ flags, args, io }) {
    noArguments(args, 'internal process wait-kill');
    const { pid } = flags;
    if (pid === undefined) throw usage('required flag(s) "pid" not set');
    if (pid < 0) throw usage(`there is no process ${pid}`);
    if (pid === 0) return 0;
    if (io.platform !== 'linux') throw new RdError('ERR_USAGE', 'only supported on Linux');
    const { endGroupAfter } = await import('../../src/os/process-table.ts');
    const { steadyClock } = await import('../../src/os/clock.ts');
    await endGroupAfter(pid, steadyClock, io.signal);
    return 0;
  },
});

const processes = defineGroup({
  name: 'internal process',
  summary: 'Work with processes',
  description: '',
  flags: {},
  classic: true,
  subcommands: [waitKill],
  async otherwise() {
    throw usage('"rdctl internal process" expects subcommands');
  },
});

export const internal = defineGroup({
  name: 'internal',
  summary: 'Commands used by the application',
  description: '',
  flags: {},
  classic: true,
  subcommands: [processes],
  async otherwise() {
    throw usage('"rdctl internal" expects subcommands');
  },
});
