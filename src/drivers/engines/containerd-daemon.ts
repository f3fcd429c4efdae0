import { RdError } from '../../errors.ts';
import type { Arrangement, Shell } from '../shell.ts';
import type { ContainerdPlaces, PodNetwork } from './containerd-config.ts';
import { containerdConfig, containerdSockets } from './containerd-config.ts';
import { type EngineProgram, startReady } from './ready.ts';

const READY_MS = 60_000;

/** What containerd, like every gRPC server, waits for and then keeps a connection open: the preface of HTTP/2 and empty settings. */
export const GRPC_HELLO = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/** The private containerd of an engine: moby runs its containers with one, and it is an engine by itself. */
export interface ContainerdDaemon {
  readonly program: EngineProgram;
  /** What it wants to find when it is started, after what is wanted beside it. Nothing of it runs. */
  arrangement(beside: Arrangement): Arrangement;
  /** Arranges that, starts it and waits until it takes connections: it does so when it is ready, and not before. */
  start(beside: Arrangement, signal: AbortSignal): Promise<void>;
  /** Its version, or undefined when it does not answer. */
  version(signal: AbortSignal): Promise<string | undefined>;
  /** Runs `ctr` against it. Errors as `run`. */
  ctr(args: readonly string[], signal: AbortSignal): Promise<string>;
}

/** `name` is the program's name on its machine; it appears in logs and messages. `pods`: a cluster is to run on it. */
export function containerdDaemon(
  shell: Shell,
  places: ContainerdPlaces,
  name: string,
  pods?: PodNetwork,
): ContainerdDaemon {
  const program: EngineProgram = { name, argv: ['containerd', '--config', places.config], readyMs: READY_MS };

  async function ctr(args: readonly string[], signal: AbortSignal): Promise<string> {
    const argv = ['ctr', '--address', places.socket, '--connect-timeout', '5s', '--timeout', '20s', ...args];
    return (await shell.run(argv, { signal, timeoutMs: 30_000 })).stdout;
  }

  async function version(signal: AbortSignal): Promise<string | undefined> {
    try {
      const text = await ctr(['version'], signal);
      return /Server:\s+Version:\s+v?(\S+)/.exec(text)?.[1] ?? 'unknown';
    } catch (error) {
      // Only silence is an answer here: a missing program or a cancelled wait is not.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return undefined;
      throw error;
    }
  }

  const arrangement = ({ absent, directories, files }: Arrangement): Arrangement => ({
    absent: [...absent, ...containerdSockets(places)],
    directories: [...directories, places.root, places.state],
    files: [...files, { path: places.config, text: containerdConfig(places, pods) }],
  });

  return {
    program,
    ctr,
    version,
    arrangement,
    start: (beside, signal) =>
      startReady(shell, { before: arrangement(beside), program, answers: () => shell.listens(places.socket) }, signal),
  };
}
