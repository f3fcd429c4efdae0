import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RdError } from '../../errors.ts';
import { run } from '../../os/run.ts';
import { userHome } from '../../os/user-directories.ts';
import { COMPATIBLE } from '../../product.ts';
import type { Connection } from '../connection.ts';
import type { SessionIo } from '../session/home.ts';

/** The name of the application's machine. */
const INSTANCE = '0';

/** Access to a machine: the words that precede those of a command. Otherwise the state of the machine, or the reason why it is unknown. */
export type MachineShell =
  | { argv: readonly string[]; env: Readonly<Record<string, string | undefined>> }
  | { state: string }
  | { failure: string; exitCode: number };

/**
 * Finds access to the application's machine through its own `limactl`.
 * @throws RdError `ERR_WRONG_TARGET` if its machine cannot be reached from here.
 */
export async function machineShell({ file }: Connection, io: SessionIo): Promise<MachineShell> {
  if (io.platform === 'win32')
    throw unreachable('on Windows its machine is a WSL distribution: `wsl --distribution rancher-desktop`');
  if (file === undefined) throw unreachable('it was specified by flags, so its directories are unknown');
  const home = join(dirname(file), 'lima');
  if (!existsSync(home)) throw unreachable(`can't find the lima-home directory at ${JSON.stringify(home)}`);
  const limactl = candidates(io).find((path) => existsSync(path));
  if (limactl === undefined) throw unreachable('its limactl was not found');
  const env = { ...io.env, LIMA_HOME: home };
  const { stdout, stderr, exitCode } = await run([limactl, 'ls', INSTANCE, '--format', '{{.Status}}'], {
    env,
    accept: [0, 1],
  });
  const state = stdout.trim().split('\n', 1)[0] ?? '';
  if (state === '') {
    const failure = stderr.trim() || 'Underlying limactl check failed with no output.';
    return { failure, exitCode: exitCode === 0 ? 1 : exitCode };
  }
  return state === 'Running' ? { argv: [limactl, 'shell', INSTANCE], env } : { state };
}

/** Lists the install locations beside its own command-line tool, that of this user first. */
function candidates({ env, platform }: SessionIo): string[] {
  const home = userHome(env, platform);
  // Skipped without a home: a path must never be relative to the working directory.
  const tool = home === '' ? undefined : join(home, '.rd', 'bin', 'rdctl');
  const installed =
    platform === 'darwin'
      ? `/Applications/${COMPATIBLE.productName}.app/Contents/Resources/resources/darwin`
      : `/opt/${COMPATIBLE.directory}/resources/resources/linux`;
  return [...(tool !== undefined && existsSync(tool) ? [join(dirname(realpathSync(tool)), '..')] : []), installed].map(
    (directory) => join(directory, 'lima', 'bin', 'limactl'),
  );
}

function unreachable(reason: string): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `Cannot open a shell in the machine of ${COMPATIBLE.productName}: ${reason}.`,
    {
      advice: `Use the rdctl that came with ${COMPATIBLE.productName}.`,
    },
  );
}
