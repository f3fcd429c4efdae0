import { RdError } from '../../src/errors.ts';
import { run } from '../../src/os/run.ts';

export interface WindowsDataInput {
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** The path converter of every WSL distribution. */
  wslpath: string;
}

/** Limit for a Windows host that is slow to wake up. */
const LIMIT_MS = 5_000;
/** An absolute Windows path: a drive or a share. An unset variable expands to its own name. */
const WINDOWS_PATH = /^(?:[A-Za-z]:\\|\\\\[^\\])[^\r\n]*$/;

/**
 * Inside WSL: the Windows user's local data directory as a Linux path. `undefined` when Windows gives no usable answer,
 * because a connection file on the Linux side may still work.
 */
export async function windowsDataDirectory({ env, signal, wslpath }: WindowsDataInput): Promise<string | undefined> {
  const ask = async (...argv: string[]) => {
    const { stdout } = await run(argv, { env, signal, timeoutMs: LIMIT_MS });
    return stdout.replace(/[\r\n]+$/, '');
  };
  try {
    // Only the Windows shell can expand its variables, and it needs `chcp` to answer in UTF-8.
    const windows = await ask('cmd.exe', '/c', 'chcp 65001 >nul & echo %LOCALAPPDATA%');
    if (!WINDOWS_PATH.test(windows)) return undefined;
    const here = await ask(wslpath, windows);
    return here.startsWith('/') ? here : undefined;
  } catch (error) {
    if (error instanceof RdError && !signal.aborted) return undefined;
    throw error;
  }
}
