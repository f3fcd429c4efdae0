import { RdError } from '../../errors.ts';
import type { Arrangement, Shell } from '../shell.ts';
import type { ContainerdPlaces, PodNetwork } from './containerd-config.ts';
import { containerdConfig, containerdSockets } from './containerd-config.ts';
import { type EngineProgram, startReady } from './ready.ts';

const READY_MS = 60_000;

/** The HTTP/2 preface and empty settings: gRPC servers such as containerd keep a connection open after them. */
export const GRPC_HELLO = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/** The private containerd of an engine: moby runs its containers with one, and containerd is itself an engine. */
export interface ContainerdDaemon {
  readonly program: EngineProgram;
  /** Its required files, after the caller's. Nothing of it runs. */
  arrangement(beside: Arrangement): Arrangement;
  /** Writes the required files, starts it and waits until it accepts connections, which means that it is ready. */
  start(beside: Arrangement, signal: AbortSignal): Promise<void>;
  /** Its version, or undefined without a response. */
  version(signal: AbortSignal): Promise<string | undefined>;
  /** Runs `ctr` against it. Errors as `run`. */
  ctr(args: readonly string[], signal: AbortSignal): Promise<string>;
}

/** `name` is the program's name on its machine, as in logs and messages. `pods`: a cluster runs on it. */
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
      // Only silence means that it is down: a missing program or a canceled wait does not.
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
