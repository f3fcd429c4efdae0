import { noArguments } from '../arguments/arguments.ts';
import { machineOf } from '../arguments/machine.ts';
import { defineCommand } from '../command.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

/** The name of the machine for ssh. */
const HOST = 'rdctl';

export const sshConfig = defineCommand({
  name: 'ssh-config',
  summary: 'Print an OpenSSH configuration for the virtual machine',
  usage: '',
  description: `Any program that uses OpenSSH can then reach the machine by the name \`${HOST}\`: ssh, scp, sftp,
rsync, and editors. The port changes with each start of the machine, so print it again after one.
Everything in it comes from the records of this home. Needs a driver with a virtual machine (qemu).

  rdctl ssh-config > ~/.ssh/rdctl.conf
  ssh -F ~/.ssh/rdctl.conf ${HOST}

With \`Include rdctl.conf\` in ~/.ssh/config, \`ssh ${HOST}\` is enough. OpenSSH cannot read a
configuration from \`<(…)\`.`,
  flags: {
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'ssh-config');
    const { login } = await machineOf(io, 'No ssh is needed to use it.');
    const { sshConfigBlock } = await import('../../src/drivers/backend-access.ts');
    const json = { host: HOST, ...login };
    io.out(flags.output === 'json' ? `${JSON.stringify(json, null, 2)}\n` : sshConfigBlock(HOST, login));
    return 0;
  },
});
