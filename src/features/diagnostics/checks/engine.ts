import { connect } from 'node:net';
import { type Check, type Finding, failed, passed } from '../check.ts';
import type { CheckContext } from '../context.ts';
import { probe } from '../http-probe.ts';

/** Milliseconds. */
const ANSWER_LIMIT = 5_000;
const LOOK = [{ description: 'See `rdctl status` and the log of the engine; `rdctl apply` starts what should run.' }];

/** The requested engine responds on its socket. */
export const engineAnswers: Check = {
  id: 'ENGINE_ANSWERS',
  category: 'Container Engine',
  applies: () => true,
  followsBackend: true,
  async run(context, signal): Promise<Finding[]> {
    const { power, backendState, engines } = context.status();
    const { name } = context.settings().containerEngine;
    // Still converging; any result would be outdated at once.
    if (backendState === 'STARTING' || backendState === 'STOPPING') return [];
    if (power === 'stopped') return [passed(`${name} is switched off, as asked.`)];
    const engine = engines[name];
    if (engine.state === 'unknown') return [];
    if (engine.state === 'unresponsive') return [failed(`${name} does not answer: ${engine.message}.`, LOOK)];
    if (engine.state === 'stopped') return [failed(`${name} does not run, although it should.`, LOOK)];
    const socket = socketOf(engine.endpoint);
    if (socket === undefined) return [passed(`${name} runs, simulated: \`${engine.endpoint}\` is not a socket.`)];
    const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT)]);
    try {
      if (name === 'moby') await ping(socket, limited);
      else await dial(socket, limited);
      return [passed(`${name} answers on \`${socket}\`.`)];
    } catch (error) {
      if (signal.aborted) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      return [failed(`${name} does not answer on \`${socket}\`: ${reason}.`, LOOK)];
    }
  },
};

/** A check that queries moby on its socket; without findings unless a real one runs. */
export function mobyCheck(
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

/** containerd speaks another protocol; only whether it accepts a connection can be checked without it. */
function dial(path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, signal });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
