import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { homeOf } from '../../../src/client/session/home.ts';
import { RdError } from '../../../src/errors.ts';
import { decide } from '../../../src/features/upgrade/decision.ts';
import { standaloneFile } from '../../../src/features/upgrade/installation.ts';
import { PINNED, type PinnedReleases } from '../../../src/features/upgrade/pinned.ts';
import { openProgram, type ProgramFile } from '../../../src/features/upgrade/program-file.ts';
import { findRelease, type Release } from '../../../src/features/upgrade/release.ts';
import { servicesOf } from '../../../src/features/upgrade/services.ts';
import { parseAllowedSigners } from '../../../src/features/upgrade/signers.ts';
import { type ReleaseSource, releaseSource } from '../../../src/features/upgrade/source.ts';
import type { PublicKey } from '../../../src/features/upgrade/ssh-signature.ts';
import { isVersion, targetSuffix } from '../../../src/features/upgrade/sums.ts';
import { versionOfProgram } from '../../../src/features/upgrade/trial.ts';
import { readIfThere } from '../../../src/os/atomic-file.ts';
import { ioError, systemCode } from '../../../src/os/io-error.ts';
import { shellLine } from '../../../src/os/program.ts';
import { PRODUCT } from '../../../src/product.ts';
import { tryLock } from '../../../src/state/home-lock.ts';
import { exposureOf, exposureText, refuseExposed } from '../../../src/state/ownership.ts';
import { usage } from '../../arguments/values.ts';
import type { Io } from '../../command.ts';
import { downloadProgress } from '../../views/progress.ts';
import type { UpgradeReport } from './report.ts';

interface UpgradeFlags {
  'allowed-signers'?: string;
  'base-url'?: string;
  check?: boolean;
  version?: string;
}

/**
 * Finds a release, and replaces this program with it.
 * @throws RdError `ERR_UPGRADE_REFUSED`, `ERR_USAGE`, `ERR_CONNECTION`, `ERR_NOT_FOUND`, `ERR_IO`, `ERR_NOT_PRIVATE`, `ERR_CANCELLED`.
 */
export async function upgradeTo(
  flags: UpgradeFlags,
  io: Io,
  { pinned = PINNED, current = PRODUCT.version }: { pinned?: PinnedReleases; current?: string } = {},
): Promise<UpgradeReport> {
  const wanted = flags.version?.replace(/^v/, '');
  if (wanted !== undefined && !isVersion(wanted)) throw usage(`${JSON.stringify(flags.version)} is not a version`);
  const program = await standaloneFile(io.self, io.platform, io.env.PATH);
  const base = baseOf(flags, io, pinned);
  const { keys, file: signers } = await keysOf(flags, io, pinned);
  const downloads = downloadsOf(io);
  const progress = downloadProgress(io);
  const source = releaseSource(base, {
    fetch,
    downloads,
    onProgress: progress.show,
    onRetry: progress.retry,
    sleep: async (ms, signal) => void (await delay(ms, undefined, { signal })),
    signal: io.signal,
  });
  const release = await findRelease(source, keys, targetSuffix(io.platform, process.arch), wanted);
  const decision = decide({ current, found: release.version, named: wanted !== undefined });
  const found = { current, version: release.version, from: source.name, program, signer: release.signer };
  if (decision.do === 'nothing') return { outcome: decision.because, ...found };
  if (flags.check) return { outcome: 'available', ...found };
  const { services, previous } = await withUpgradeLock(downloads, async () => {
    const file = await openForWriting(program, current, { version: flags.version, base, signers }, io);
    const running = await servicesOf(program);
    await install(release, source, file, progress, io);
    return { services: running, previous: file.previous };
  });
  const outcome = decision.way === 'newer' ? 'upgraded' : 'downgraded';
  return { outcome, ...found, previous, ...(services ? { services } : {}) };
}

/** Exchanges this program with the one before the last upgrade. Throws the errors of `upgradeTo`. */
export async function goBack(io: Io, current: string = PRODUCT.version): Promise<UpgradeReport> {
  const program = await standaloneFile(io.self, io.platform, io.env.PATH);
  return withUpgradeLock(downloadsOf(io), async () => {
    const file = await openForWriting(program, current, { back: true }, io);
    if (!(await file.hasPrevious())) {
      throw new RdError('ERR_UPGRADE_REFUSED', `there is no version to go back to: ${file.previous} is not there`, {
        advice: 'Install one with `rdctl upgrade --version VERSION`.',
      });
    }
    refuseExposedPrevious(file.previous);
    const version = await versionOfProgram(file.previous, file.previous, io.env, io.signal);
    const services = await servicesOf(program);
    await file.goBack();
    const outcome = 'went-back';
    return { outcome, current, version, program, previous: file.previous, ...(services ? { services } : {}) };
  });
}

async function install(
  release: Release,
  source: ReleaseSource,
  file: ProgramFile,
  progress: { end(): void },
  { env, signal }: Io,
): Promise<void> {
  const { version, name, sha256 } = release;
  const received = await source.program([version, name], sha256).finally(progress.end);
  const staged = await file.stage(received.path, sha256);
  try {
    const said = await versionOfProgram(staged, name, env, signal);
    if (said !== version) {
      throw new RdError('ERR_UPGRADE_REFUSED', `${name} says that it is version ${said}`, {
        advice: 'Nothing was changed. Report it to the publisher of the release.',
      });
    }
    await file.replace(staged);
  } finally {
    await file.discard(staged);
  }
  await received.discard();
}

function downloadsOf(io: Io): string {
  return join(homeOf(io).cache, 'downloads');
}

/**
 * Runs work while holding the lock of downloads: two into one directory would spoil each other. Another directory has another lock, so only
 * `ProgramFile` keeps two exchanges of one program apart.
 */
async function withUpgradeLock<T>(downloads: string, work: () => Promise<T>): Promise<T> {
  const taken = await tryLock(join(downloads, 'upgrade.lock'));
  if ('holder' in taken) {
    throw new RdError('ERR_UPGRADE_REFUSED', `another upgrade is running (pid ${taken.holder.pid})`, {
      advice: 'Wait for it, and look with `rdctl version`.',
    });
  }
  return work().finally(() => taken.lock.release());
}

/**
 * Opens the file of this program, which runs as the version `current`.
 * @throws RdError `ERR_NOT_PRIVATE` for a program that others can change, `ERR_IO` with the command that helps, `ERR_UPGRADE_REFUSED` when it has
 *   been replaced since this command began.
 */
async function openForWriting(
  program: string,
  current: string,
  request: UpgradeRequest,
  { env, platform, signal }: Io,
): Promise<ProgramFile> {
  const otherwise = 'Move the program to a directory that only you or root can write';
  refuseExposed([program], { because: 'so it cannot be upgraded safely', otherwise });
  // A directory with the sticky bit protects the program, but not the files beside it.
  refuseExposed([dirname(program)], {
    because: `so what lies beside ${program}, such as the version before it, may be theirs`,
    otherwise: `${otherwise}: \`${shellLine(['mv', program, '/usr/local/bin/'])}\``,
  });
  const file = await openProgram(program, { platform }).catch((error: unknown) => {
    const isDenied = error instanceof RdError && systemCode(error.cause) === 'EACCES';
    if (!isDenied || platform === 'win32') throw error;
    throw new RdError('ERR_IO', error.message, {
      cause: error,
      advice: `Run it as root: ${shellLine([...asRoot(platform), program, 'upgrade', ...wordsOf(request)])}`,
    });
  });
  const version = await versionOfProgram(program, program, env, signal);
  if (version === current) return file;
  throw new RdError('ERR_UPGRADE_REFUSED', `${program} is version ${version} by now, perhaps by another upgrade`, {
    advice: 'Nothing was changed. Run the command again if needed.',
  });
}

/** Throws `ERR_NOT_PRIVATE` for a previous program that may have been put there while the directory was open to others. */
function refuseExposedPrevious(previous: string): void {
  const exposure = exposureOf(previous);
  if (!exposure) return;
  throw new RdError(
    'ERR_NOT_PRIVATE',
    `${exposureText(exposure)}, so ${previous} need not be the version before the last upgrade`,
    {
      advice: `Remove it: ${shellLine(['rm', previous])}\nThen install a version with \`rdctl upgrade --version VERSION\`.`,
    },
  );
}

/** The request, from which the command is repeated as root. */
interface UpgradeRequest {
  back?: boolean;
  version?: string | undefined;
  base?: string;
  /** The file of the keys; absent for those of the build. */
  signers?: string | undefined;
}

/** Returns the flags for root, who has other settings and gets no variables from sudo. */
function wordsOf({ back, version, base, signers }: UpgradeRequest): string[] {
  return [
    ...(back ? ['--back'] : []),
    ...(version === undefined ? [] : ['--version', version]),
    ...(base === undefined ? [] : ['--base-url', base]),
    ...(signers === undefined ? [] : ['--allowed-signers', signers]),
  ];
}

/** Returns the sudo command. On macOS sudo keeps the home of the user, which root must not use. */
function asRoot(platform: Io['platform']): string[] {
  return platform === 'darwin' ? ['sudo', '-H'] : ['sudo'];
}

function baseOf(flags: UpgradeFlags, { env }: Io, pinned: PinnedReleases): string {
  const base = flags['base-url'] || env.RDCTL_UPGRADE_URL || pinned.url;
  if (base !== undefined) return base;
  throw usage('this rdctl does not know where its releases are', 'Add --base-url URL, or set RDCTL_UPGRADE_URL.');
}

/** Returns the trusted keys. Those of a file replace the built-in ones, so that one can be revoked. */
async function keysOf(
  flags: UpgradeFlags,
  io: Io,
  pinned: PinnedReleases,
): Promise<{ keys: readonly PublicKey[]; file?: string }> {
  const named = flags['allowed-signers'];
  if (named !== undefined) {
    const path = pathIn(io.cwd, named);
    const text = await readFile(path, 'utf8').catch((cause: unknown) => {
      throw ioError('read', path, cause);
    });
    return { keys: parseAllowedSigners(text, path), file: path };
  }
  const { allowedSigners: path } = homeOf(io);
  refuseExposed([path], {
    because: 'so the keys in it cannot be trusted',
    otherwise: 'Name a file with --allowed-signers FILE',
  });
  const text = await readIfThere(path, { follow: true }).catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  if (text !== undefined) return { keys: parseAllowedSigners(text, path), file: path };
  if (pinned.signers !== '') return { keys: parseAllowedSigners(pinned.signers, 'the build') };
  throw new RdError('ERR_UPGRADE_REFUSED', 'this rdctl was built without a key for releases, so it trusts none', {
    advice:
      `Write the key of the publisher to ${path}, as one line: release ssh-ed25519 AAAA…\n` +
      'Get it from the publisher, not from the place of the releases. Or name a file with --allowed-signers FILE.',
  });
}

function pathIn(cwd: string, path: string): string {
  return isAbsolute(path) ? path : join(cwd, path);
}
