import { createWriteStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { RdError } from '../../errors.ts';
import { ioError } from '../../os/io-error.ts';
import { shellLine } from '../../os/program.ts';
import type { RunOptions, RunResult } from '../../os/run.ts';
import { type GuestImage, type ImagePackage, isPackage } from './image.ts';
import {
  FINISH_PATH,
  FINISH_SCRIPT,
  KERNELS,
  type Kernel,
  PACKAGE_LIST,
  PATH_OPTIONS,
  packagesOf,
  RECIPE_SUM,
  RESULTS,
  ROOT_BYTES,
  ROOT_FILES,
  SUITES,
  type Suite,
} from './recipe.ts';
import type { ImageStore } from './store.ts';

export interface BuildInput {
  store: ImageStore;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Base URL of a Debian archive; mmdebstrap's own by default. */
  mirror?: string;
  suite: Suite;
  kernel: Kernel;
  /** Accept an archive with an expired index, such as a Debian snapshot. */
  allowExpired?: boolean;
  /** Called with the name of each phase when it begins. */
  onPhase?(phase: string): void;
  /** Whether this user is root and therefore needs no user namespace. */
  asRoot: boolean;
  now(): number;
  signal: AbortSignal;
}

/** Downloading packages over a slow connection takes long and prints no progress. */
const BUILD_MS = 60 * 60_000;
/** The names of the image's files in the recipe's results directory. */
const FILES = { kernel: 'vmlinuz', initrd: 'initrd', disk: 'disk.qcow2' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64' };

/**
 * Builds a guest image with mmdebstrap and stores it. Requires root or permission to create user namespaces.
 * @throws RdError `ERR_DRIVER_TERMINAL` with an install hint for a missing program; `ERR_DRIVER_FAILED` with the last lines of the failed
 *   program's output; `ERR_IO`; `ERR_CANCELLED`. A failed build leaves nothing behind.
 */
export async function buildImage(input: BuildInput): Promise<GuestImage> {
  const {
    store,
    run,
    mirror,
    suite,
    kernel,
    allowExpired = false,
    onPhase = () => undefined,
    asRoot,
    now,
    signal,
  } = input;
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) {
    throw new RdError(
      'ERR_DRIVER_TERMINAL',
      `guest images are built for x86_64, and this computer is ${process.arch}`,
      {
        advice: 'Build the image on an x86_64 computer.',
      },
    );
  }
  const { suffix, features } = KERNELS[kernel];
  const draft = await store.draft();
  try {
    const files = join(draft.directory, 'files.tar');
    await writeRoot(files);
    onPhase('installing packages');
    await run(
      [
        'mmdebstrap',
        // Without this option, apt's errors are not printed.
        '--verbose',
        '--variant=minbase',
        '--format=null',
        '--aptopt=APT::Install-Recommends "false"',
        ...(allowExpired ? ['--aptopt=Acquire::Check-Valid-Until "false"'] : []),
        ...PATH_OPTIONS.map((option) => `--dpkgopt=${option}`),
        `--include=${packagesOf(suite, kernel).join(',')}`,
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
      throw asRoot ? error : withAdvice(error);
    });
    onPhase('checking');
    const packages = await readPackages(join(draft.directory, PACKAGE_LIST));
    await Promise.all([files, join(draft.directory, PACKAGE_LIST)].map((path) => rm(path)));
    const name = `${SUITES[suite].name}${suffix}`;
    const created = new Date(now()).toISOString();
    const source = { suite, kernel, recipe: RECIPE_SUM, packages };
    return await draft.keep({ name, architecture, rootBytes: ROOT_BYTES, created, features, source }, FILES, signal);
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

/** Writes the recipe's files as a tar archive, all owned by root regardless of the current user. */
async function writeRoot(archive: string): Promise<void> {
  const entries = pack();
  for (const { path, mode, text } of ROOT_FILES) entries.entry({ name: path.slice(1), mode, uid: 0, gid: 0 }, text);
  entries.entry({ name: FINISH_PATH.slice(1), mode: 0o700, uid: 0, gid: 0 }, FINISH_SCRIPT);
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

/** For users other than root the usual cause is a missing user namespace, and mmdebstrap does not explain how to enable one. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  return new RdError(error.code, error.message, {
    cause: error,
    details: error.details,
    advice:
      'A user other than root needs the package uidmap and a range of ids in /etc/subuid and /etc/subgid: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.',
  });
}
