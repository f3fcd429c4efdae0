import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '../../../errors.ts';
import { isObject } from '../../../json.ts';
import { systemCode } from '../../../os/io-error.ts';
import { type Check, type CheckContext, type Finding, failed, passed } from '../check.ts';
import { probe } from '../http-probe.ts';

/** Milliseconds that an engine has to respond. */
const ANSWER_LIMIT = 5_000;
const ADVICE = [{ description: 'See `rdctl status` and the log of the engine; `rdctl apply` starts what should run.' }];

/** Checks that the requested engine responds on its socket. */
export const engineAnswers: Check = {
  id: 'ENGINE_ANSWERS',
  category: 'Container Engine',
  applies: () => true,
  followsBackend: true,
  async run(context, signal): Promise<Finding[]> {
    const { power, backendState, engines } = context.status();
    const { name } = context.settings().containerEngine;
    // While the backend converges, any result would be outdated at once.
    if (backendState === 'STARTING' || backendState === 'STOPPING') return [];
    if (power === 'stopped') return [passed(`${name} is switched off, as asked.`)];
    const engine = engines[name];
    if (engine.state === 'unknown') return [];
    if (engine.state === 'unresponsive') return [failed(`${name} does not answer: ${engine.message}.`, ADVICE)];
    if (engine.state === 'stopped') return [failed(`${name} does not run, although it should.`, ADVICE)];
    const socket = socketOf(engine.endpoint);
    if (socket === undefined) return [passed(`${name} runs, simulated: \`${engine.endpoint}\` is not a socket.`)];
    const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT)]);
    try {
      if (name === 'moby') await ping(socket, limited);
      else await dial(socket, limited);
      return [passed(`${name} answers on \`${socket}\`.`)];
    } catch (error) {
      if (signal.aborted) throw error;
      const reason = messageOf(error);
      return [failed(`${name} does not answer on \`${socket}\`: ${reason}.`, ADVICE)];
    }
  },
};

/** Creates a check that queries moby on its socket; without findings unless a real one runs. */
function mobyCheck(
  id: string,
  look: (socket: string, context: CheckContext, signal: AbortSignal) => Promise<readonly Finding[]>,
): Check {
  return {
    id,
    category: 'Container Engine',
    applies: ({ settings }) => settings().containerEngine.name === 'moby',
    followsBackend: true,
    async run(context, signal) {
      const { moby } = context.status().engines;
      const socket = moby.state === 'running' ? socketOf(moby.endpoint) : undefined;
      return socket === undefined ? [] : look(socket, context, signal);
    },
  };
}

function socketOf(endpoint: string): string | undefined {
  return endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : undefined;
}

async function ping(socket: string, signal: AbortSignal): Promise<void> {
  const { status } = await probe('GET', { socket, path: '/_ping' }, signal);
  if (status !== 200) throw new Error(`it answered with status ${status}`);
}

/** Connects to containerd. It speaks another protocol, so only whether it accepts a connection can be checked. */
function dial(path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, signal });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });
}

/** Tolerated clock difference in milliseconds; the Date header has whole seconds. */
const TOLERANCE = 5_000;

/** Checks that the engine's clock matches this computer's: certificates and images have dates. */
export const clock = mobyCheck('CLOCK', async (socket, context, signal) => {
  const requestedAt = context.now();
  const { serverTime } = await probe('GET', { socket, path: '/_ping' }, signal);
  const respondedAt = context.now();
  if (serverTime === undefined) return [];
  // The server read its clock between request and response, and truncated it to a second.
  const behind = requestedAt - serverTime - 1_000;
  const ahead = serverTime - respondedAt;
  const skew = Math.max(behind, ahead, 0);
  if (skew <= TOLERANCE) return [passed('The clock of the engine agrees with that of this computer.')];
  const direction = ahead > behind ? 'ahead of' : 'behind';
  return [
    failed(`The clock of the engine is ${Math.round(skew / 1000)} s ${direction} that of this computer.`, [
      { description: 'Restart the backend: `rdctl shutdown`, then `rdctl start`.' },
    ]),
  ];
});

/** Metadata of the two image stores, below the data directory of moby. */
const CLASSIC = 'image';
const CONTENT = join('io.containerd.content.v1.content', 'blobs', 'sha256');
/** Content directories of the containerd that dockerd starts itself, and of ours beside it. */
const SNAPSHOTTERS = [join('containerd', 'daemon', CONTENT), join('..', 'moby-containerd', CONTENT)];

/** Checks that the inactive image store of moby, which no client sees, contains no images. */
export const mobyImageStore = mobyCheck('MOBY_IMAGE_STORE', async (socket, _context, signal) => {
  const { status, body } = await probe('GET', { socket, path: '/info' }, signal);
  if (status !== 200) return [];
  const facts: unknown = JSON.parse(body);
  if (!isObject(facts) || typeof facts.DockerRootDir !== 'string') return [];
  const usesSnapshotter = JSON.stringify(facts.DriverStatus ?? []).includes('io.containerd.snapshotter');
  const root = facts.DockerRootDir;
  // The data of an engine in a guest is not here, so its store cannot be checked.
  if ((await entries(root)).length === 0) return [];
  const stranded = usesSnapshotter ? await classicImages(root) : await snapshotterContent(root);
  const [used, other] = usesSnapshotter ? ['snapshotter', 'classic'] : ['classic', 'snapshotter'];
  if (stranded === 0) return [passed(`All images of moby are in the store that it uses (\`${used}\`).`)];
  return [
    failed(`moby uses its \`${used}\` image store; the \`${other}\` store has images, too, which are not shown.`, [
      {
        description: `To see them: \`rdctl set --container-engine.moby-storage-driver ${other}\`. To move one: \`docker save\` there, \`docker load\` here.`,
      },
    ]),
  ];
});

/** Counts the images of every storage driver that the classic store was used with. */
async function classicImages(root: string): Promise<number> {
  const drivers = await entries(join(root, CLASSIC));
  const images = drivers.map((driver) => entries(join(root, CLASSIC, driver, 'imagedb', 'content', 'sha256')));
  return (await Promise.all(images)).flat().length;
}

async function snapshotterContent(root: string): Promise<number> {
  return (await Promise.all(SNAPSHOTTERS.map((path) => entries(join(root, path))))).flat().length;
}

/** Lists a directory; empty for a missing one. */
async function entries(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return [];
    throw error;
  });
}
