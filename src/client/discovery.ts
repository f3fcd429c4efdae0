import { readFileSync } from 'node:fs';
import { basename, posix } from 'node:path';
import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import { ioError } from '../os/io-error.ts';
import type { Environment } from '../os/user-directories.ts';
import { userHome } from '../os/user-directories.ts';
import { COMPATIBLE } from '../product.ts';
import type { Platform } from '../settings/field.ts';
import { lockStanding } from '../state/lock-standing.ts';
import { requirePrivate } from '../state/ownership.ts';
import type { Places } from '../state/places.ts';
import { places } from '../state/places.ts';
import { serviceSocket } from '../state/service-socket.ts';
import type { Connection, Reached } from './connection.ts';
import {
  type ConnectionFile,
  insideWsl,
  NO_CONNECTION,
  readConnectionFile,
  windowsDataDirectory,
} from './connection-file.ts';

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
  /** The path converter of every WSL distribution, `/bin/wslpath` by default; its presence identifies WSL. */
  wslpath?: string;
  /** Returns the signal that cancels the questions to Windows. If absent, Windows is never asked. */
  signal?: () => AbortSignal;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i;
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
    throw new RdError('ERR_NOT_RUNNING', `${NO_CONNECTION}open ${here.connectionFile}: ${missing(platform)}`, {
      advice: 'No service is running. Start one with `rdctl start`, or with `rdctl serve` in the foreground.',
    });
  }
  const user = given.user ?? file?.user ?? '';
  const password = given.password ?? file?.password ?? '';
  const port = given.port ?? file?.port ?? 0;
  if (user === '' || password === '' || port === 0) {
    throw new RdError(
      'ERR_CONNECTION_SETTINGS',
      `${NO_CONNECTION}insufficient connection settings (missing one or more of: port, user, and password)`,
      { advice: `Specify --port, --user and --password-file, or fix ${file?.path ?? here.connectionFile}.` },
    );
  }
  return {
    host: flags.host || file?.host || '127.0.0.1',
    port,
    user,
    password,
    ...defined({ passwordFrom }),
    ...(file ? { file: file.path } : {}),
    ...(file?.pid === undefined ? {} : { pid: file.pid }),
    ...(file?.revision === undefined ? {} : { revision: file.revision }),
    foreign: file?.foreign ?? false,
    reached: file && !flags.host && given.port === undefined ? withPassword(file.reached, password) : { by: 'word' },
  };
}

/** Adds the given password to the check of the listener: an empty one proves nothing, so without one in the file, the listener must know it. */
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
    return socket === undefined ? own : { ...own, reached: { by: 'socket', path: socket } };
  }
  if (own || here.foreignConnectionFile === undefined) return own;
  const { signal, wslpath = '/bin/wslpath' } = options;
  if (signal && platform === 'linux' && insideWsl(env, wslpath)) {
    const directory = await windowsDataDirectory({ env, signal: signal(), wslpath });
    const path = directory && posix.join(directory, COMPATIBLE.directory, COMPATIBLE.connectionFile);
    // The mount does not show the Windows owner, and the listener is on the Windows side.
    const windows = path ? await readConnectionFile(path, true, { anyOwner: true }) : undefined;
    if (windows) return { ...windows, reached: { by: 'user', unseen: 'accepted' } };
  }
  return readConnectionFile(here.foreignConnectionFile, true);
}

/**
 * Whether the file belongs to this home; false in a copy of a home, where it points to the original's service.
 * @throws RdError `ERR_HOME_MOVED` when its service was started under another path of this same directory.
 */
async function isOfThisHome({ serviceLock }: Places): Promise<boolean> {
  const standing = lockStanding(serviceLock);
  if (standing === 'moved') {
    const { lockHolder } = await import('../state/home-lock.ts');
    await lockHolder(serviceLock);
  }
  return standing !== 'copied';
}

/**
 * Whether the file of drop-in mode, which has Rancher Desktop's name, is another application's. It is ours if our service wrote it, and stale once
 * its writer has exited, whatever listens on its port since.
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
  // A file with a name of the user's choice may be from either application.
  if (file?.reached.by === 'proof') return { ...file, reached: { ...file.reached, orUser: true } };
  if (file) return file;
  throw new RdError('ERR_CONNECTION_SETTINGS', `${NO_CONNECTION}open ${path}: no such file or directory`, {
    advice: 'Check --config-path or RDCTL_CONFIG_PATH; the file exists only while its service is running.',
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
      advice: 'Use a readable file that contains only the password.',
    });
  }
}

/** Returns the source of `givenPassword`, for a message. */
function passwordSource(flags: ConnectionFlags, env: Environment): string | undefined {
  if (flags.password) return '--password';
  if (flags['password-file']) return `--password-file ${flags['password-file']}`;
  return env.RDCTL_PASSWORD ? 'RDCTL_PASSWORD' : undefined;
}

function missing(platform: Platform): string {
  return platform === 'win32' ? 'The system cannot find the file specified' : 'no such file or directory';
}
