import { type Client, createClient } from '../../src/client/client.ts';
import { sentenceOf } from '../../src/client/plain-call.ts';
import { RdError } from '../../src/errors.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { requireMarked } from '../../src/state/adoption.ts';
import { clearCache } from '../../src/state/factory-reset.ts';
import { mistake, noArguments } from '../arguments/arguments.ts';
import { defineCommand, type GlobalFlags, type Invocation, type Io } from '../command.ts';
import { homeOf } from '../session/absence.ts';
import { OUTPUT_FLAG } from '../views/choose.ts';
import { askYes } from '../views/consent.ts';
import { resetEverything, TARGETS } from './reset/factory.ts';

/** The server replies once the backend is up again. */
const LIMIT_MS = 30 * 60_000;

export const reset = defineCommand({
  name: 'reset',
  summary: 'Remove the cluster, the machine, downloads, or everything',
  usage: '',
  description: `--k8s deletes what is in the cluster and keeps images and containers. --vm deletes the machine with
all images, containers and volumes, and makes a new one. --cache deletes downloads. --factory ends the
service and removes settings, data, guest images, extensions and logs, and what rdctl has put into shell files,
docker configuration and autostart; snapshots that exist stay, and so do downloads unless --cache is given too.

A person at a terminal is asked first; --yes answers. What was removed is told on stderr. The exit code
is 1 when something could not be removed.`,
  flags: {
    vm: { type: 'boolean', summary: 'The machine, with images, containers and volumes' },
    k8s: { type: 'boolean', summary: 'What is in the cluster' },
    cache: { type: 'boolean', summary: 'Downloads' },
    factory: { type: 'boolean', summary: 'Everything of this installation' },
    yes: { type: 'boolean', short: 'y', summary: 'Do not ask' },
    target: { type: 'string', summary: 'Which application, where another one runs too', values: TARGETS },
    output: { ...OUTPUT_FLAG, summary: 'Format of what --factory says' },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'reset');
    const { target } = flags;
    const yes = flags.yes === true;
    if (flags.factory === true) {
      const wish = { cache: flags.cache === true, yes, json: flags.output === 'json' };
      return resetEverything({ ...wish, ...(target ? { target } : {}) }, invocation);
    }
    const mode = flags.vm === true ? 'wipe' : flags.k8s === true ? 'fast' : undefined;
    if (mode === undefined && flags.cache !== true) {
      throw mistake('no reset options specified. Use --help to see available options');
    }
    if (mode !== undefined) io.out(`${await resetBackend(mode, yes, target, invocation)}\n`);
    if (flags.cache === true) {
      const here = homeOf(io);
      await requireMarked(here);
      await clearCache(here);
      io.out('Cache cleared successfully\n');
    }
    return 0;
  },
});

const LOSSES = {
  wipe: 'the machine with all images, containers and volumes',
  fast: 'everything that is in the cluster',
};

async function resetBackend(
  mode: keyof typeof LOSSES,
  yes: boolean,
  target: string | undefined,
  { connect, globals, io }: Pick<Invocation, 'connect' | 'globals' | 'io'>,
): Promise<string> {
  const client: Client = createClient(await connect());
  // Check first: the listener may be another program.
  await client.backendState({ signal: io.signal });
  const { foreign, file } = client.connection;
  if (foreign !== (target === COMPATIBLE.target) && !(foreign && consents(target, globals, io))) {
    throw wrongTarget(foreign, file);
  }
  if (!yes && io.interactive) {
    const who = foreign ? ` of ${COMPATIBLE.productName}` : '';
    await askYes(`This deletes ${LOSSES[mode]}${who}. Go on?`, io);
  }
  const body = JSON.stringify({ mode });
  return sentenceOf(client, { method: 'PUT', path: '/v1/k8s_reset', body, timeoutMs: LIMIT_MS, signal: io.signal });
}

/** As for `shutdown`, an auto-discovered application is not reset without consent. */
function consents(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return target === undefined && Boolean(globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT);
}

function wrongTarget(foreign: boolean, file: string | undefined): RdError {
  const what = foreign ? COMPATIBLE.productName : 'a service of rdctl';
  return new RdError('ERR_WRONG_TARGET', `what runs is ${what}${file === undefined ? '' : `, found through ${file}`}`, {
    advice: foreign
      ? `If it is to be reset, say so: --target ${COMPATIBLE.target}`
      : 'Leave --target out, or name the other application with --config-path.',
  });
}
