import { createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import { COMPATIBLE, PRODUCT } from '../../src/product.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { noArguments, usage } from '../arguments.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { quote } from '../literals.ts';

const FIELDS = ['version', 'ip-address'] as const;

/** An address, or why there is none. */
type Address = { known: true; value: string } | { known: false; why: string };

export const info = defineCommand({
  name: 'info',
  summary: 'Show the version and the address of the machine',
  usage: '',
  description: `Prints what is known: the version always, the address while a machine runs. What is not known
is null in JSON and has its reason on stderr.`,
  flags: {
    field: { type: 'string', short: 'f', summary: 'Only this: version or ip-address', placeholder: 'FIELD' },
    output: { type: 'string', short: 'o', summary: 'Format', values: ['text', 'json'] },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'info');
    const field = FIELDS.find((name) => name === flags.field);
    if (flags.field && !field) throw usage(`unknown field ${quote(flags.field)}`);
    const version = `v${PRODUCT.version}`;
    const address: Address = field === 'version' ? { known: false, why: '' } : await machineAddress(invocation);
    if (field === 'ip-address' && !address.known) throw new RdError('ERR_NOT_READY', address.why);
    if (!field && !address.known) io.err(`${address.why}\n`);
    const values = { version, 'ip-address': address.known ? address.value : null };
    if (flags.output === 'json') {
      io.out(`${JSON.stringify(field ? { [field]: values[field] } : values, null, 2)}\n`);
    } else if (field) {
      io.out(`${values[field]}\n`);
    } else {
      io.out(`Version:   ${version}\n${address.known ? `IPAddress: ${address.value}\n` : ''}`);
    }
    return 0;
  },
});

function whyNot({ code, message }: RdError): string {
  if (code !== 'ERR_NOT_FOUND') return message;
  return `what runs is another application (${COMPATIBLE.productName}, or an older release), and those do not tell it.`;
}

async function machineAddress({ connect, io }: Invocation): Promise<Address> {
  let status: StatusDocument;
  try {
    status = await createClient(await connect()).status({ signal: io.signal });
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_CANCELLED') throw error;
    return { known: false, why: `The address is not known: ${whyNot(error)}` };
  }
  const { driver, machine } = status;
  if (machine.state !== 'on') {
    return { known: false, why: `The address is not known: the machine is ${machine.state}.` };
  }
  // The host driver has no machine of its own, and the other forwards to the loopback: it is reached where the service is.
  if (driver.name === 'host' || driver.name === 'qemu') return { known: true, value: '127.0.0.1' };
  return { known: false, why: `The ${driver.name} driver gives its machine no address.` };
}
