import { posix, win32 } from 'node:path';
import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import type { Environment } from '../os/user-directories.ts';
import { COMPATIBLE, DROP_IN, DROP_IN_IDENTITY, type Identity, OWN_IDENTITY } from '../product.ts';
import type { Platform } from '../settings/field.ts';

/** The paths of one installation. All are absolute. */
export interface Places {
  /** Value of `RDCTL_HOME`; absent when the operating system's directories are used. */
  home?: string;
  /** Drop-in mode (`RDCTL_COMPAT`): all paths are those of the compatible application. */
  dropIn?: 'rancher-desktop';
  data: string;
  config: string;
  logs: string;
  state: string;
  cache: string;
  /** Written while a service runs: user, password, port, pid. */
  connectionFile: string;
  settingsFile: string;
  /** The settings before the last change. */
  previousSettingsFile: string;
  /** Driver, desired power, generation. */
  stateFile: string;
  /** The origin of the settings of this home. */
  firstRunFile: string;
  /** Settings of a write in progress; see `src/state/desired-write.ts`. */
  stagedSettingsFile: string;
  /** The settings that were written last, which reveal an edited file; see `src/state/desired-write.ts`. */
  writtenSettingsFile: string;
  /** Every write of the desired state; see `src/state/history-file.ts`. */
  historyFile: string;
  /** Directory of the tokens for other programs; see `src/state/tokens.ts`. */
  tokens: string;
  /** The last proven state, and the apply in progress; see `src/state/transaction-files.ts`. */
  provenFile: string;
  transactionFile: string;
  /** Keys that may sign releases, written by the user; see `docs/install.md`. */
  allowedSigners: string;
  /** The kept profiles, with their secrets. */
  keptFile: string;
  /** Directory of the lock that a service holds for its lifetime. */
  serviceLock: string;
  /** Directory of the lock that an `apply` holds while it works. */
  applyLock: string;
  /** Exists while the backend must stay stopped; see `src/state/backend-lock.ts`. */
  backendLock: string;
  snapshots: string;
  /** Proves that a snapshot was made here; see `src/features/snapshots/key.ts`. */
  snapshotKey: string;
  extensions: string;
  /** Images that virtual machines boot. */
  guestImages: string;
  /** Our programs for the user's PATH. */
  bin: string;
  /** In drop-in mode: marks the directories as ours. */
  dropInMarker?: string;
  /** The compatible application's connection file; absent with `RDCTL_HOME` and in drop-in mode, where only our own is read. */
  foreignConnectionFile?: string;
}

interface Bases {
  data: string;
  config: string;
  logs: string;
  state: string;
  cache: string;
  /** Directory of programs; `bin` in the data directory if absent. */
  bin?: string;
  foreignData?: string;
}

/**
 * Returns the directories of this product for one user. `RDCTL_HOME`, when set and not empty, moves all of them below one directory; otherwise
 * `RDCTL_COMPAT=rancher-desktop` (drop-in mode, docs/drop-in.md) selects those of the compatible application.
 * @throws RdError `ERR_USAGE` when `RDCTL_HOME` is relative, `RDCTL_COMPAT` has another value or no home directory is known.
 */
export function places(env: Environment, platform: Platform, homedir: string): Places {
  const { join } = platform === 'win32' ? win32 : posix;
  const home = ownHome(env, platform);
  const dropIn = home === undefined && wantsDropIn(env);
  const identity = dropIn ? DROP_IN_IDENTITY : OWN_IDENTITY;
  const bases = home === undefined ? systemBases(env, platform, homedir, identity) : basesBelow(home, platform);
  return {
    ...defined({ home }),
    ...(dropIn ? { dropIn: DROP_IN, dropInMarker: join(bases.data, 'rdctl-drop-in.json') } : {}),
    data: bases.data,
    config: bases.config,
    logs: bases.logs,
    state: bases.state,
    cache: bases.cache,
    connectionFile: join(bases.data, identity.connectionFile),
    settingsFile: join(bases.config, 'settings.json'),
    previousSettingsFile: join(bases.config, 'settings.previous.json'),
    stateFile: join(bases.state, 'state.json'),
    firstRunFile: join(bases.state, 'first-run.json'),
    stagedSettingsFile: join(bases.state, 'settings.staged.json'),
    writtenSettingsFile: join(bases.state, 'settings.written.json'),
    historyFile: join(bases.state, 'history.jsonl'),
    tokens: join(bases.state, 'tokens'),
    provenFile: join(bases.state, 'proven.json'),
    transactionFile: join(bases.state, 'transaction.json'),
    allowedSigners: join(bases.config, 'allowed-signers'),
    keptFile: join(bases.state, 'kept.json'),
    serviceLock: join(bases.state, 'service.lock'),
    applyLock: join(bases.state, 'apply.lock'),
    backendLock: join(bases.data, 'backend.lock'),
    snapshots: join(bases.data, 'snapshots'),
    snapshotKey: snapshotKeyOf(join(bases.data, 'snapshots')),
    extensions: join(bases.data, 'extensions'),
    guestImages: join(bases.data, 'guest-images'),
    bin: bases.bin ?? join(bases.data, 'bin'),
    ...(dropIn || bases.foreignData === undefined
      ? {}
      : { foreignConnectionFile: join(bases.foreignData, COMPATIBLE.connectionFile) }),
  };
}

/** Returns the path of the key beside a directory of snapshots. */
export function snapshotKeyOf(snapshots: string): string {
  return `${snapshots}.key`;
}

/** Returns the directory names of an installation. */
export function identityOf({ dropIn }: Pick<Places, 'dropIn'>): Identity {
  return dropIn === undefined ? OWN_IDENTITY : DROP_IN_IDENTITY;
}

function wantsDropIn({ RDCTL_COMPAT: value }: Environment): boolean {
  if (value === undefined || value === '') return false;
  if (value === DROP_IN) return true;
  throw new RdError('ERR_USAGE', `RDCTL_COMPAT is ${JSON.stringify(value)}; the only valid value is "${DROP_IN}"`, {
    advice: 'Set it to that value, or unset it.',
  });
}

function ownHome(env: Environment, platform: Platform): string | undefined {
  const value = env.RDCTL_HOME;
  if (value === undefined || value === '') return undefined;
  const { isAbsolute, normalize } = platform === 'win32' ? win32 : posix;
  if (!isAbsolute(value)) {
    throw new RdError('ERR_USAGE', `RDCTL_HOME is ${JSON.stringify(value)}, which is not an absolute path`, {
      advice: 'Set RDCTL_HOME to a full path, so that every command uses the same directory.',
    });
  }
  const normal = normalize(value);
  return normal.length > 1 ? normal.replace(/[/\\]$/, '') : normal;
}

function basesBelow(home: string, platform: Platform): Bases {
  const { join } = platform === 'win32' ? win32 : posix;
  return {
    data: home,
    config: join(home, 'config'),
    logs: join(home, 'logs'),
    state: join(home, 'state'),
    cache: join(home, 'cache'),
  };
}

function systemBases(env: Environment, platform: Platform, homedir: string, identity: Identity): Bases {
  const bases = platformBases(env, platform, homedir, identity);
  if (identity !== DROP_IN_IDENTITY) return bases;
  const { isAbsolute } = platform === 'win32' ? win32 : posix;
  const { RD_LOGS_DIR } = env;
  return {
    ...bases,
    ...(platform === 'linux' ? { logs: posix.join(bases.data, 'logs') } : {}),
    ...(RD_LOGS_DIR !== undefined && isAbsolute(RD_LOGS_DIR) ? { logs: RD_LOGS_DIR } : {}),
    ...(platform === 'win32' ? {} : { bin: posix.join(requireHome(homedir), '.rd', 'bin') }),
  };
}

function platformBases(env: Environment, platform: Platform, homedir: string, { directory }: Identity): Bases {
  switch (platform) {
    case 'linux':
      return linuxBases(env, homedir, directory);
    case 'darwin':
      return darwinBases(homedir, directory);
    case 'win32':
      return windowsBases(env, homedir, directory);
  }
}

function linuxBases(env: Environment, homedir: string, directory: string): Bases {
  // By the XDG base directory specification, an empty or relative value counts as unset.
  const base = (name: string, ...fallback: string[]): string => {
    const value = env[name];
    return value !== undefined && posix.isAbsolute(value) ? value : posix.join(requireHome(homedir), ...fallback);
  };
  const data = base('XDG_DATA_HOME', '.local', 'share');
  const state = posix.join(base('XDG_STATE_HOME', '.local', 'state'), directory);
  return {
    data: posix.join(data, directory),
    config: posix.join(base('XDG_CONFIG_HOME', '.config'), directory),
    logs: posix.join(state, 'logs'),
    state,
    cache: posix.join(base('XDG_CACHE_HOME', '.cache'), directory),
    foreignData: posix.join(data, COMPATIBLE.directory),
  };
}

function darwinBases(homedir: string, directory: string): Bases {
  const library = posix.join(requireHome(homedir), 'Library');
  const data = posix.join(library, 'Application Support', directory);
  return {
    data,
    config: posix.join(library, 'Preferences', directory),
    logs: posix.join(library, 'Logs', directory),
    state: posix.join(data, 'state'),
    cache: posix.join(library, 'Caches', directory),
    foreignData: posix.join(library, 'Application Support', COMPATIBLE.directory),
  };
}

function windowsBases(env: Environment, homedir: string, directory: string): Bases {
  const value = env.LOCALAPPDATA;
  const local =
    value !== undefined && win32.isAbsolute(value) ? value : win32.join(requireHome(homedir), 'AppData', 'Local');
  const data = win32.join(local, directory);
  return {
    data,
    config: data,
    logs: win32.join(data, 'logs'),
    state: win32.join(data, 'state'),
    cache: win32.join(data, 'cache'),
    foreignData: win32.join(local, COMPATIBLE.directory),
  };
}

function requireHome(homedir: string): string {
  if (homedir !== '') return homedir;
  throw new RdError('ERR_USAGE', 'the home directory of the user is not known', {
    advice: 'Set HOME (USERPROFILE on Windows), or RDCTL_HOME to a full path.',
  });
}
