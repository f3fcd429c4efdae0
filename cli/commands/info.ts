import { createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import { COMPATIBLE, PRODUCT } from '../../src/product.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { noArguments } from '../arguments/arguments.ts';
import { quote, usage } from '../arguments/values.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { jsonText, plainText } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

const FIELDS = ['version', 'ip-address', 'accelerator'] as const;

/** A fact about the machine, or the reason why it is unknown. */
type Fact = { known: true; value: string } | { known: false; why: string };
interface MachineFacts {
  address: Fact;
  accelerator: Fact;
  /** Reason why KVM is unavailable. */
  emulatedBecause?: string;
}

export const info = defineCommand({
  name: 'info',
  summary: 'Show the version and the IP address of the machine',
  usage: '',
  description: `The version is always known, the IP address only while a machine is running. Unknown values
are null in JSON, with the reason on stderr. The accelerator of a virtual machine (kvm, hvf or tcg) is
available with --field and in JSON; otherwise, it is printed to stderr.

  rdctl info --field ip-address`,
  flags: {
    field: {
      type: 'string',
      short: 'f',
      summary: 'Print only this field: version, ip-address or accelerator',
      placeholder: 'FIELD',
    },
    output: OUTPUT_FLAG,
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'info');
    const field = FIELDS.find((name) => name === flags.field);
    if (flags.field && !field) throw usage(`unknown field ${quote(flags.field)}`);
    const version = `v${PRODUCT.version}`;
    const facts = field === 'version' ? undefined : await machineFacts(invocation);
    const values: Record<string, string | null> = { version, 'ip-address': knownValue(facts?.address) };
    if (facts?.accelerator.known || field === 'accelerator') values.accelerator = knownValue(facts?.accelerator);
    const asked = field === 'ip-address' ? facts?.address : field === 'accelerator' ? facts?.accelerator : undefined;
    if (asked?.known === false) throw new RdError('ERR_NOT_READY', asked.why);
    if (!field && facts?.address.known === false) io.err(`${facts.address.why}\n`);
    if (flags.output === 'json') {
      const why = facts?.emulatedBecause === undefined ? {} : { 'emulated-because': facts.emulatedBecause };
      io.out(jsonText(field ? { [field]: values[field] } : { ...values, ...why }));
    } else if (field) {
      io.out(`${values[field]}\n`);
    } else {
      io.out(`Version:   ${version}\n${facts?.address.known ? `IPAddress: ${facts.address.value}\n` : ''}`);
      // Scripts parse stdout, so additional lines go to stderr.
      if (facts?.accelerator.known) io.err(`${acceleratorText(facts)}\n`);
    }
    return 0;
  },
});

function knownValue(fact: Fact | undefined): string | null {
  return fact?.known ? fact.value : null;
}

function acceleratorText({ accelerator, emulatedBecause }: MachineFacts): string {
  if (accelerator.known && accelerator.value !== 'tcg') {
    return `The machine runs with ${String(accelerator.value).toUpperCase()}.`;
  }
  const why = emulatedBecause === undefined ? '' : `: ${plainText(emulatedBecause)}`;
  return `The machine is emulated (TCG), which is several times slower than hardware virtualization${why}.`;
}

function whyNot({ code, message }: RdError): string {
  if (code !== 'ERR_NOT_FOUND') return message;
  return `another application (${COMPATIBLE.productName}, or an older release) is running, which does not report it.`;
}

async function machineFacts({ connect, io }: Invocation): Promise<MachineFacts> {
  let status: StatusDocument;
  try {
    status = await createClient(await connect()).status({ signal: io.signal });
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_CANCELLED') throw error;
    return unknownBecause(whyNot(error));
  }
  const { driver, machine } = status;
  if (machine.state !== 'on') return unknownBecause(`the machine is ${machine.state}.`);
  const { accelerator, emulatedBecause } = machine;
  return {
    // The host driver has no machine, and the other forwards to loopback: both are reached on the service's host.
    address:
      driver.name === 'host' || driver.name === 'qemu'
        ? { known: true, value: '127.0.0.1' }
        : { known: false, why: `The machine of the ${driver.name} driver has no address.` },
    accelerator:
      accelerator === undefined
        ? { known: false, why: `The ${driver.name} driver has no virtual machine.` }
        : { known: true, value: accelerator },
    ...defined({ emulatedBecause }),
  };
}

function unknownBecause(why: string): MachineFacts {
  return {
    address: { known: false, why: `The address is not known: ${why}` },
    accelerator: { known: false, why: `The accelerator is not known: ${why}` },
  };
}
