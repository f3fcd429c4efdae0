import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Connection } from '../../../src/client/connection.ts';
import { RdError } from '../../../src/errors.ts';
import { runAttached } from '../../../src/os/attached.ts';
import { run } from '../../../src/os/run.ts';
import { userHome } from '../../../src/os/user-home.ts';
import { COMPATIBLE } from '../../../src/product.ts';
import type { Io } from '../../command.ts';
import { notInState, refuse } from './vm-state-texts.ts';

/** Rancher Desktop's instance name of its machine. */
const INSTANCE = '0';

/**
 * Opens a shell in Rancher Desktop's machine through its own `limactl`.
 * @throws RdError `ERR_WRONG_TARGET` where its machine cannot be reached from here.
 */
export async function foreignShell({ file }: Connection, args: readonly string[], io: Io): Promise<number> {
  if (io.platform === 'win32')
    throw unreachable('on Windows its machine is a WSL distribution: `wsl --distribution rancher-desktop`');
  if (file === undefined) throw unreachable('it was named by flags, so its directories are not known');
  const home = join(dirname(file), 'lima');
  if (!existsSync(home)) throw unreachable(`can't find the lima-home directory at ${JSON.stringify(home)}`);
  const limactl = candidates(io).find((path) => existsSync(path));
  if (limactl === undefined) throw unreachable('its limactl is not where it installs it');
  const env = { ...io.env, LIMA_HOME: home };
  const { stdout, stderr, exitCode } = await run([limactl, 'ls', INSTANCE, '--format', '{{.Status}}'], {
    env,
    accept: [0, 1],
  });
  const state = stdout.trim().split('\n', 1)[0] ?? '';
  if (state === '') {
    io.err(`${stderr.trim() || 'Underlying limactl check failed with no output.'}\n`);
    return exitCode === 0 ? 1 : exitCode;
  }
  if (state !== 'Running') return refuse(notInState(state), io);
  return runAttached({ argv: [limactl, 'shell', INSTANCE, ...args], env, terminal: io.interactive });
}

/** Install locations: beside its own command-line tool, first the one of this user. */
function candidates({ env, platform }: Io): string[] {
  const home = userHome(env, platform);
  // Never relative to the working directory.
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
  return new RdError('ERR_WRONG_TARGET', `There is no shell in the machine of ${COMPATIBLE.productName}: ${reason}.`, {
    advice: `Use the rdctl that came with ${COMPATIBLE.productName}.`,
  });
}
