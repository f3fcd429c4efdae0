import { RdError } from '../../errors.ts';
import { defined, parseObject } from '../../json.ts';
import { run } from '../../os/run.ts';
import { isVersion } from './sums.ts';

const TRIAL_MS = 60_000;

/**
 * Runs a program once, so that one that cannot run here (another processor, an older C library) never replaces one that can.
 * @param name the program's name in messages.
 * @returns the version that it reports.
 * @throws RdError `ERR_UPGRADE_REFUSED` with the reason, `ERR_CANCELLED`.
 */
export async function versionOfProgram(
  program: string,
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<string> {
  const { stdout } = await run([program, 'version', '-o', 'json'], { env, signal, timeoutMs: TRIAL_MS }).catch(
    (cause: unknown) => {
      if (signal.aborted || !(cause instanceof RdError)) throw cause;
      throw notRunning(name, cause.message, cause);
    },
  );
  const said = parseObject(stdout)?.version;
  const version = typeof said === 'string' ? said.replace(/^v/, '') : '';
  if (isVersion(version)) return version;
  throw notRunning(name, 'it does not say its version');
}

function notRunning(name: string, why: string, cause?: unknown): RdError {
  return new RdError('ERR_UPGRADE_REFUSED', `${name} does not run on this computer: ${why}`, {
    ...defined({ cause }),
    advice: 'Nothing was changed: the program that is there stays.',
  });
}
