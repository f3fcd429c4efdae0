// Synchronous: a connection file is tiny, and loading `fs/promises` takes a twentieth of a short command's time.
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { RdError } from '../errors.ts';
import { defined, isObject } from '../json.ts';
import { systemCode } from '../os/io-error.ts';
import { shellWord } from '../os/program.ts';
import type { Environment } from '../os/user-directories.ts';
import { exposureBy, trustOfUser } from '../state/ownership.ts';
import type { Reached } from './connection.ts';

/** Prefix of messages about a connection; scripts match it. */
export const NO_CONNECTION = 'failed to get connection info: ';
/** Magic number of the 9P file system: `V9FS_MAGIC` of linux/magic.h. */
const PLAN_9 = 0x01021997;

export interface ConnectionFile {
  path: string;
  foreign: boolean;
  user: string;
  password: string;
  port: number;
  host: string;
  pid?: number;
  /** Revision of the service's interface; absent in files of others and of our first releases. */
  revision?: number;
  /** How the listener is verified, unless the user names host or port. */
  reached: Reached;
}

/** Reads a connection file. Missing fields are returned empty; returns undefined for a missing file. */
export async function readConnectionFile(
  path: string,
  foreign: boolean,
  { anyOwner = false, named = false } = {},
): Promise<ConnectionFile | undefined> {
  let text: string;
  try {
    text = ownText(path, { anyOwner, named });
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    const code = systemCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    const reason = code === 'EACCES' ? 'permission denied' : code === 'EISDIR' ? 'is a directory' : String(code);
    throw new RdError('ERR_CONNECTION_SETTINGS', `${NO_CONNECTION}open ${path}: ${reason}`, {
      cause,
      advice: 'The file belongs to the user running the service; run rdctl as that user.',
    });
  }
  const fields = fieldsOf(path, parse(path, text));
  return { path, foreign, ...fields, reached: foreign ? { by: 'user' } : { by: 'proof', password: fields.password } };
}

/** Reads the file without following what other users can write. Non-blocking open: a pipe in its place would hang. */
function ownText(path: string, { anyOwner, named }: { anyOwner: boolean; named: boolean }): string {
  // A pipe from the shell, `--config-path <(…)`: opened once, and waited for.
  if (named && statSync(path).isFIFO()) return readFileSync(path, 'utf8');
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const facts = fstatSync(file);
    if (!anyOwner && process.getuid && facts.isFile()) {
      const by = exposureBy({ ...facts, kind: 'file', last: true }, trustOfUser());
      if (by && !(named && isOnWindows(path))) {
        if (by === 'owner') throw untrustedFileError(path, `it belongs to another user (uid ${facts.uid})`);
        throw untrustedFileError(path, 'other users can write it', `chmod 600 ${shellWord(path)}`);
      }
    }
    if (!facts.isFile() && !facts.isDirectory()) throw untrustedFileError(path, 'it is not a file');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/** Whether a path is on a Windows mount inside WSL, where every file is world-writable. */
function isOnWindows(path: string): boolean {
  return process.platform === 'linux' && statfsSync(path).type === PLAN_9;
}

function untrustedFileError(path: string, reason: string, remedy?: string): RdError {
  return new RdError('ERR_CONNECTION_SETTINGS', `${NO_CONNECTION}open ${path}: ${reason}, and nothing was sent`, {
    advice: remedy
      ? `Another user may have changed it. If the file is yours, run \`${remedy}\` and restart the service.`
      : 'Run rdctl as the user running the service, or connect with --host, --port, --user and --password-file.',
  });
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // The parser's message quotes the text, which contains the password.
    throw unusable(path, 'it is not JSON', cause instanceof SyntaxError ? undefined : cause);
  }
}

function fieldsOf(
  path: string,
  value: unknown,
): Pick<ConnectionFile, 'user' | 'password' | 'port' | 'host' | 'pid' | 'revision'> {
  if (!isObject(value)) throw unusable(path, 'it is not a JSON object');
  // Field names in this file are case-insensitive.
  const fields = new Map(Object.entries(value).map(([name, each]) => [name.toLowerCase(), each]));
  const text = (name: string): string => {
    const field = fields.get(name) ?? '';
    if (typeof field !== 'string') throw unusable(path, `"${name}" is not a string`);
    return field;
  };
  const port = fields.get('port') ?? 0;
  if (typeof port !== 'number' || !Number.isInteger(port)) throw unusable(path, '"port" is not an integer');
  if (port < 0 || port > 65_535) throw unusable(path, '"port" is not between 1 and 65535');
  const pid = fields.get('pid');
  const process = typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? { pid } : {};
  const revision = fields.get('revision');
  const facts = { ...process, ...(typeof revision === 'number' ? { revision } : {}) };
  return { user: text('user'), password: text('password'), host: text('host'), port, ...facts };
}

function unusable(path: string, reason: string, cause?: unknown): RdError {
  return new RdError('ERR_CONNECTION_SETTINGS', `${NO_CONNECTION}error parsing config file "${path}": ${reason}`, {
    ...defined({ cause }),
    advice: 'The service rewrites this file when it starts; if no service is running, remove the file.',
  });
}

export function insideWsl(env: Environment, wslpath: string): boolean {
  if (env.WSL_DISTRO_NAME === undefined && env.WSL_INTEROP === undefined && env.WSLENV === undefined) return false;
  try {
    return lstatSync(wslpath).isSymbolicLink();
  } catch {
    return false;
  }
}

interface WindowsDataInput {
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  wslpath: string;
}

/** Milliseconds for a Windows host that is slow to wake up. */
const LIMIT_MS = 5_000;
/** An absolute Windows path: a drive or a share. An unset variable expands to its own name. */
const WINDOWS_PATH = /^(?:[A-Za-z]:\\|\\\\[^\\])[^\r\n]*$/;

/**
 * Returns the Windows user's local data directory as a Linux path, inside WSL. Undefined when Windows gives no usable answer, because a connection
 * file on the Linux side may still work.
 */
export async function windowsDataDirectory({ env, signal, wslpath }: WindowsDataInput): Promise<string | undefined> {
  const ask = async (...argv: string[]) => {
    const { run } = await import('../os/run.ts');
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
