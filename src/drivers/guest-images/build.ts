import { createWriteStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { RdError } from '../../errors.ts';
import { ioError } from '../../os/io-error.ts';
import { shellLine } from '../../os/program.ts';
import type { RunOptions, RunResult } from '../../os/run.ts';
import { ARCHITECTURES, type Architecture, guestArchitecture } from './architecture.ts';
import { type GuestImage, type ImagePackage, isPackage } from './image.ts';
import {
  FINISH_PATH,
  finishScript,
  KERNELS,
  type Kernel,
  PACKAGE_LIST,
  packagesOf,
  pathOptions,
  RESULTS,
  ROOT_BYTES,
  recipeSum,
  rootFiles,
  SUITES,
  type Suite,
} from './recipe.ts';
import type { ImageStore } from './store.ts';

export interface BuildInput {
  store: ImageStore;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Base URL of a Debian archive; mmdebstrap's own by default. */
  mirror?: string;
  architecture: Architecture;
  suite: Suite;
  kernel: Kernel;
  /** Accept an archive with an expired index, such as a Debian snapshot. */
  allowExpired?: boolean;
  /** Called with the name of each phase when it begins. */
  onPhase?(phase: string): void;
  /** True if this user is root and therefore needs no user namespace. */
  asRoot: boolean;
  now(): number;
  signal: AbortSignal;
}

/** Downloading packages over a slow connection takes long and prints no progress. */
const BUILD_MS = 60 * 60_000;
/** Names of the image's files in the recipe's results directory. */
const FILES = { kernel: 'vmlinuz', initrd: 'initrd', disk: 'disk.qcow2' };

/**
 * Builds a guest image with mmdebstrap and stores it. Requires root or permission to create user namespaces, and for another architecture than that
 * of this computer an emulator that the kernel starts on its own (binfmt).
 * @throws RdError `ERR_DRIVER_TERMINAL` with an install hint for a missing program; `ERR_DRIVER_FAILED` with the last lines of the failed program's
 * output; `ERR_IO`; `ERR_CANCELLED`. A failed build leaves nothing behind.
 */
export async function buildImage(input: BuildInput): Promise<GuestImage> {
  const {
    store,
    run,
    mirror,
    architecture,
    suite,
    kernel,
    allowExpired = false,
    onPhase = () => undefined,
    asRoot,
    now,
    signal,
  } = input;
  const { suffix, features } = KERNELS[kernel];
  const isForeign = architecture !== guestArchitecture(process.arch);
  const { debian, imageSuffix } = ARCHITECTURES[architecture];
  const draft = await store.draft();
  try {
    const files = join(draft.directory, 'files.tar');
    await writeRoot(files, architecture);
    onPhase('installing packages');
    await run(
      [
        'mmdebstrap',
        // Without this option, apt's errors are not printed.
        '--verbose',
        '--variant=minbase',
        ...(isForeign ? [`--architectures=${debian}`] : []),
        '--format=null',
        '--aptopt=APT::Install-Recommends "false"',
        ...(allowExpired ? ['--aptopt=Acquire::Check-Valid-Until "false"'] : []),
        ...pathOptions(architecture).map((option) => `--dpkgopt=${option}`),
        `--include=${packagesOf(architecture, suite, kernel).join(',')}`,
        // mmdebstrap's built-in hooks translate file owners between this user and the user namespace.
        `--customize-hook=${shellLine(['tar-in', files, '/'])}`,
        `--customize-hook=sh "$1${FINISH_PATH}" "$1"`,
        ...[...Object.values(FILES), PACKAGE_LIST].map(
          (name) => `--customize-hook=${shellLine(['download', `${RESULTS}/${name}`, join(draft.directory, name)])}`,
        ),
        suite,
        '-',
        ...(mirror === undefined ? [] : [mirror]),
      ],
      {
        signal,
        timeoutMs: BUILD_MS,
        maxOutput: 64 * 1024 * 1024,
        env: { ...process.env, RDCTL_ROOT_BYTES: String(ROOT_BYTES) },
      },
    ).catch((error: unknown) => {
      throw isForeign ? withEmulatorAdvice(error, debian) : asRoot ? error : withAdvice(error);
    });
    onPhase('checking');
    const packages = await readPackages(join(draft.directory, PACKAGE_LIST));
    await Promise.all([files, join(draft.directory, PACKAGE_LIST)].map((path) => rm(path)));
    const name = `${SUITES[suite].name}${suffix}${imageSuffix}`;
    const created = new Date(now()).toISOString();
    const source = { suite, kernel, recipe: recipeSum(architecture), packages };
    return await draft.keep({ name, architecture, rootBytes: ROOT_BYTES, created, features, source }, FILES, signal);
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

/** Writes the recipe's files as a tar archive, all owned by root regardless of the current user. */
async function writeRoot(archive: string, architecture: Architecture): Promise<void> {
  const entries = pack();
  for (const { path, mode, text } of rootFiles(architecture))
    entries.entry({ name: path.slice(1), mode, uid: 0, gid: 0 }, text);
  entries.entry({ name: FINISH_PATH.slice(1), mode: 0o700, uid: 0, gid: 0 }, finishScript(architecture));
  entries.finalize();
  try {
    await pipeline(entries, createWriteStream(archive, { mode: 0o600 }));
  } catch (cause) {
    throw ioError('write', archive, cause);
  }
}

async function readPackages(path: string): Promise<ImagePackage[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [name = '', version = '', sha256 = ''] = line.split(' ');
      const entry = { name, version, sha256 };
      if (!isPackage(entry)) throw new RdError('ERR_DRIVER_FAILED', `the build recorded an invalid package: ${line}`);
      return entry;
    });
}

/**
 * Adds advice to an error. For users other than root the usual cause is a missing user namespace, and mmdebstrap does not explain how to enable one.
 */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  return new RdError(error.code, error.message, {
    cause: error,
    details: error.details,
    advice:
      'A user other than root needs the package uidmap and a range of ids in /etc/subuid and /etc/subgid: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.',
  });
}

/** Adds advice about a missing emulator: installing packages runs their scripts, which takes one. */
function withEmulatorAdvice(error: unknown, debian: string): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  return new RdError(error.code, error.message, {
    cause: error,
    details: error.details,
    advice: `An image for ${debian} needs an emulator on this computer: apt-get install qemu-user-static binfmt-support arch-test. Check it with \`arch-test ${debian}\`.`,
  });
}
