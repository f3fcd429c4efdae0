// Synchronous: a connection file is tiny, and loading `fs/promises` takes a twentieth of a short command's time.
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { basename, posix } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { shellWord } from '../os/program.ts';
import type { Environment } from '../os/user-directories.ts';
import { userHome } from '../os/user-directories.ts';
import { COMPATIBLE } from '../product.ts';
import type { Platform } from '../settings/field.ts';
import { lockStanding } from '../state/home-lock.ts';
import { exposedBy, requirePrivate, trustOfUser } from '../state/ownership.ts';
import type { Places } from '../state/places.ts';
import { places } from '../state/places.ts';
import { serviceSocket } from '../state/service-socket.ts';
import type { Connection, Reached } from './connection.ts';

/** The global flags that name the service; an empty string and port 0 count as not given. */
export interface ConnectionFlags {
  'config-path'?: string;
  host?: string;
  port?: number;
  user?: string;
  password?: string;
  'password-file'?: string;
}

export interface DiscoveryOptions {
  homedir?: string;
  /**
   * Inside WSL: the Windows user's local data directory as a Linux path. Only called there, and only without a
   * connection file of ours. `wslpath` is the program whose presence identified WSL.
   */
  windowsDataDirectory?: (wslpath: string) => Promise<string | undefined>;
  /** Location of that program, `/bin/wslpath` by default. */
  wslpath?: string;
}

interface ConnectionFile {
  path: string;
  foreign: boolean;
  user: string;
  password: string;
  port: number;
  host: string;
  pid?: number;
  /** How its listener is verified, unless the user names host or port. */
  reached: Reached;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;
/** Type of a file system: `V9FS_MAGIC` of linux/magic.h. */
const PLAN_9 = 0x01021997;

const PREFIX = 'failed to get connection info: ';

/**
 * Finds the service: flags first, then the environment (`RDCTL_CONFIG_PATH`, `RDCTL_PASSWORD`), then a connection file,
 * ours before Rancher Desktop's.
 * @throws RdError `ERR_NOT_RUNNING` without a file or sufficient flags; `ERR_CONNECTION_SETTINGS` for an unusable file;
 * `ERR_NOT_PRIVATE` when another user could have written ours.
 */
export async function discover(
  flags: ConnectionFlags,
  env: Environment,
  platform: Platform,
  options: DiscoveryOptions = {},
): Promise<Connection> {
  const here = places(env, platform, options.homedir ?? userHome(env, platform));
  const explicit = flags['config-path'] || env.RDCTL_CONFIG_PATH || undefined;
  const file =
    explicit === undefined || explicit === here.connectionFile
      ? await defaultFile(here, env, platform, options)
      : await explicitFile(explicit);
  const given = {
    user: flags.user || undefined,
    port: flags.port || undefined,
    password: await givenPassword(flags, env),
  };
  const passwordFrom = passwordSource(flags, env);
  if (!file && (given.user === undefined || given.port === undefined || given.password === undefined)) {
    throw new RdError('ERR_NOT_RUNNING', `${PREFIX}open ${here.connectionFile}: ${missing(platform)}`, {
      advice: 'No service is running. Start one with `rdctl start`, or with `rdctl serve` in the foreground.',
    });
  }
  const user = given.user ?? file?.user ?? '';
  const password = given.password ?? file?.password ?? '';
  const port = given.port ?? file?.port ?? 0;
  if (user === '' || password === '' || port === 0) {
    throw new RdError(
      'ERR_CONNECTION_SETTINGS',
      `${PREFIX}insufficient connection settings (missing one or more of: port, user, and password)`,
      { advice: `Give --port, --user and --password-file, or correct ${file?.path ?? here.connectionFile}.` },
    );
  }
  return {
    host: flags.host || file?.host || '127.0.0.1',
    port,
    user,
    password,
    ...(passwordFrom === undefined ? {} : { passwordFrom }),
    ...(file ? { file: file.path } : {}),
    ...(file?.pid === undefined ? {} : { pid: file.pid }),
    foreign: file?.foreign ?? false,
    reached: file && !flags.host && given.port === undefined ? withPassword(file.reached, password) : { by: 'word' },
  };
}

/** An empty password proves nothing: without one in the file, the listener must know the given one. */
function withPassword(reached: Reached, password: string): Reached {
  return reached.by === 'proof' && reached.password === '' ? { ...reached, password } : reached;
}

async function defaultFile(
  here: Places,
  env: Environment,
  platform: Platform,
  options: DiscoveryOptions,
): Promise<ConnectionFile | undefined> {
  const found = await readConnectionFile(here.connectionFile, await belongsToOther(here));
  const own = found && (await isOfThisHome(here)) ? found : undefined;
  if (own && !own.foreign) {
    requirePrivate(here);
    const socket = serviceSocket(here);
    return { ...own, reached: socket === undefined ? await withoutSocket(own, here) : { by: 'socket', path: socket } };
  }
  if (own || here.foreignConnectionFile === undefined) return own;
  const { windowsDataDirectory, wslpath = '/bin/wslpath' } = options;
  if (windowsDataDirectory && platform === 'linux' && insideWsl(env, wslpath)) {
    const directory = await windowsDataDirectory(wslpath);
    const path = directory && posix.join(directory, COMPATIBLE.directory, COMPATIBLE.connectionFile);
    // The mount does not show the Windows owner, and the listener is on the Windows side.
    const windows = path ? await readConnectionFile(path, true, { anyOwner: true }) : undefined;
    if (windows) return { ...windows, reached: { by: 'user', unseen: 'accepted' } };
  }
  return readConnectionFile(here.foreignConnectionFile, true);
}

/**
 * A service of an older release has neither socket nor proof: while the lock says that it is alive on that port,
 * checking the user is enough.
 */
async function withoutSocket({ reached, pid, port }: ConnectionFile, { serviceLock }: Places): Promise<Reached> {
  if (reached.by !== 'proof') return reached;
  const { lockHolder } = await import('../state/home-lock.ts');
  const holder = await lockHolder(serviceLock);
  const isLiving = holder?.alive === true && holder.announced === true && holder.pid === pid && holder.port === port;
  return isLiving ? { ...reached, orUser: true } : reached;
}

/**
 * False for the file in a copy of a home, which points to the original's service.
 * @throws RdError `ERR_HOME_MOVED` when its service was started under another path of this same directory.
 */
async function isOfThisHome({ serviceLock }: Places): Promise<boolean> {
  const stands = lockStanding(serviceLock);
  if (stands === 'moved') {
    const { lockHolder } = await import('../state/home-lock.ts');
    await lockHolder(serviceLock);
  }
  return stands !== 'copied';
}

/**
 * In drop-in mode the file has Rancher Desktop's name: it is ours while written by our service, and stale once its
 * writer has exited, whatever listens on its port since.
 */
async function belongsToOther({ dropIn, serviceLock, connectionFile }: Places): Promise<boolean> {
  if (dropIn === undefined) return false;
  const [{ lockHolder }, { isStale }] = await Promise.all([
    import('../state/home-lock.ts'),
    import('../state/connection-file.ts'),
  ]);
  const holder = await lockHolder(serviceLock);
  if (holder?.alive) return !holder.announced;
  return !(await isStale(connectionFile, holder?.pid));
}

async function explicitFile(path: string): Promise<ConnectionFile> {
  const file = await readConnectionFile(path, basename(path) === COMPATIBLE.connectionFile, { named: true });
  // The owner of a listener on another computer cannot be checked; the user named it.
  if (file && file.host !== '' && !LOOPBACK.test(file.host)) return { ...file, reached: { by: 'word' } };
  // A file of any name may be from either application.
  if (file?.reached.by === 'proof') return { ...file, reached: { ...file.reached, orUser: true } };
  if (file) return file;
  throw new RdError('ERR_CONNECTION_SETTINGS', `${PREFIX}open ${path}: no such file or directory`, {
    advice: 'Check --config-path or RDCTL_CONFIG_PATH; the file exists only while its service runs.',
  });
}

/** Missing fields are returned empty; a missing file is `undefined`. */
async function readConnectionFile(
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
    throw new RdError('ERR_CONNECTION_SETTINGS', `${PREFIX}open ${path}: ${reason}`, {
      cause,
      advice: 'The file belongs to the user that runs the service; call as that user.',
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
      const by = exposedBy({ ...facts, kind: 'file', last: true }, trustOfUser());
      if (by && !(named && isOnWindows(path))) {
        if (by === 'owner') throw untrusted(path, `it belongs to another user (uid ${facts.uid})`);
        throw untrusted(path, 'other users can write it', `chmod 600 ${shellWord(path)}`);
      }
    }
    if (!facts.isFile() && !facts.isDirectory()) throw untrusted(path, 'it is not a file');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/** Inside WSL, Windows mounts make every file world-writable. */
function isOnWindows(path: string): boolean {
  return process.platform === 'linux' && statfsSync(path).type === PLAN_9;
}

function untrusted(path: string, reason: string, remedy?: string): RdError {
  return new RdError('ERR_CONNECTION_SETTINGS', `${PREFIX}open ${path}: ${reason}, and nothing was sent`, {
    advice: remedy
      ? `What it says may be theirs. If it is yours: \`${remedy}\`, and start the service again.`
      : 'Call as the user that runs the service, or name it with --host, --port, --user and --password-file.',
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

function fieldsOf(path: string, value: unknown): Pick<ConnectionFile, 'user' | 'password' | 'port' | 'host' | 'pid'> {
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
  return { user: text('user'), password: text('password'), host: text('host'), port, ...process };
}

function unusable(path: string, reason: string, cause?: unknown): RdError {
  return new RdError('ERR_CONNECTION_SETTINGS', `${PREFIX}error parsing config file "${path}": ${reason}`, {
    ...(cause === undefined ? {} : { cause }),
    advice: 'A running service writes this file anew at its next start; remove it if none runs.',
  });
}

async function givenPassword(flags: ConnectionFlags, env: Environment): Promise<string | undefined> {
  if (flags.password) return flags.password;
  const path = flags['password-file'];
  if (!path) return env.RDCTL_PASSWORD || undefined;
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (cause) {
    throw new RdError('ERR_CONNECTION_SETTINGS', ioError('read the password file', path, cause).message, {
      cause,
      advice: 'Give --password-file a file that you can read and that holds the password alone.',
    });
  }
}

/** The source of `givenPassword`, for a message. */
function passwordSource(flags: ConnectionFlags, env: Environment): string | undefined {
  if (flags.password) return '--password';
  if (flags['password-file']) return `--password-file ${flags['password-file']}`;
  return env.RDCTL_PASSWORD ? 'RDCTL_PASSWORD' : undefined;
}

function missing(platform: Platform): string {
  return platform === 'win32' ? 'The system cannot find the file specified' : 'no such file or directory';
}

function insideWsl(env: Environment, wslpath: string): boolean {
  if (env.WSL_DISTRO_NAME === undefined && env.WSL_INTEROP === undefined && env.WSLENV === undefined) return false;
  try {
    return lstatSync(wslpath).isSymbolicLink();
  } catch {
    return false;
  }
}
