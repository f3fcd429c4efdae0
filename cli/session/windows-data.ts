import { RdError } from '../../src/errors.ts';
import { run } from '../../src/process/run.ts';

export interface WindowsDataInput {
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** The translator of paths that every WSL distribution has. */
  wslpath: string;
}

/** A Windows that is asleep answers late; a command must not hang on it. */
const LIMIT_MS = 5_000;
/** What Windows calls an absolute path: a drive, or a share. An unset variable comes back as its own name. */
const WINDOWS_PATH = /^(?:[A-Za-z]:\\|\\\\[^\\])[^\r\n]*$/;

/**
 * Inside WSL: the Windows user's local data directory as a path of this side (cli facts, 2.4). `undefined` when Windows cannot
 * be asked or answers something else, because a connection file of this side may still do.
 */
export async function windowsDataDirectory({ env, signal, wslpath }: WindowsDataInput): Promise<string | undefined> {
  const ask = async (...argv: string[]) => {
    const { stdout } = await run(argv, { env, signal, timeoutMs: LIMIT_MS });
    return stdout.replace(/[\r\n]+$/, '');
  };
  try {
    // The one shell line is fixed: only the shell of Windows knows its variables, and by itself it does not answer in UTF-8.
    const windows = await ask('cmd.exe', '/c', 'chcp 65001 >nul & echo %LOCALAPPDATA%');
    if (!WINDOWS_PATH.test(windows)) return undefined;
    const here = await ask(wslpath, windows);
    return here.startsWith('/') ? here : undefined;
  } catch (error) {
    if (error instanceof RdError && !signal.aborted) return undefined;
    throw error;
  }
}
