import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { RdError } from '../../errors.ts';
import { ioError } from '../../os/io-error.ts';
import { shellLine } from '../../os/program.ts';
import type { RunOptions, RunResult } from '../../os/run.ts';
import type { GuestImage } from './image.ts';
import {
  FINISH_SCRIPT,
  KERNELS,
  type Kernel,
  LEFT_OUT,
  PACKAGES,
  RESULTS,
  ROOT_BYTES,
  ROOT_FILES,
  SUITE,
} from './recipe.ts';
import type { ImageStore } from './store.ts';

export interface BuildInput {
  store: ImageStore;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Base URL of a Debian archive; that of mmdebstrap unless told. */
  mirror?: string;
  /** `cloud` unless told. */
  kernel?: Kernel;
  /** Called as each part begins, with what is done. */
  onPhase?(phase: string): void;
  /** Whether this user is root, who needs no namespace. */
  asRoot: boolean;
  now(): number;
  signal: AbortSignal;
}

/** Installing packages over a slow line takes long, and shows nothing. */
const BUILD_MS = 60 * 60_000;
/** As they are called in the results of the recipe. */
const FILES = { kernel: 'vmlinuz', initrd: 'initrd', disk: 'disk.qcow2' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64' };

/**
 * Makes a guest image with mmdebstrap, as root or as any user that has user namespaces, and keeps it.
 * @throws RdError `ERR_DRIVER_TERMINAL` with the way to install a program that is missing; `ERR_DRIVER_FAILED` with the last lines
 *   of the one that failed; `ERR_IO`; `ERR_CANCELLED`. Nothing stays of an image that was not finished.
 */
export async function buildImage(input: BuildInput): Promise<GuestImage> {
  const { store, run, mirror, kernel = 'cloud', onPhase = () => undefined, asRoot, now, signal } = input;
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
  const { name, features, packages } = KERNELS[kernel];
  const draft = await store.draft();
  try {
    const files = join(draft.directory, 'files.tar');
    await writeRoot(files);
    onPhase('installing packages');
    await run(
      [
        'mmdebstrap',
        '--quiet',
        '--variant=minbase',
        '--format=null',
        '--aptopt=APT::Install-Recommends "false"',
        ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
        `--include=${[...PACKAGES, ...packages].join(',')}`,
        // Its own orders carry files between this user and the one that the root belongs to.
        `--customize-hook=${shellLine(['tar-in', files, '/'])}`,
        `--customize-hook=${FINISH_SCRIPT}`,
        ...Object.values(FILES).map(
          (name) => `--customize-hook=${shellLine(['download', `${RESULTS}/${name}`, join(draft.directory, name)])}`,
        ),
        SUITE,
        '-',
        ...(mirror === undefined ? [] : [mirror]),
      ],
      {
        signal,
        timeoutMs: BUILD_MS,
        maxOutput: 64 * 1024 * 1024,
        env: { ...process.env, RDCTL_ROOT_BYTES: String(ROOT_BYTES) },
      },
    );
    await rm(files);
    onPhase('checking');
    return await draft.keep(
      { name, architecture, rootBytes: ROOT_BYTES, created: new Date(now()).toISOString(), features },
      FILES,
      signal,
    );
  } catch (error) {
    await draft.discard();
    throw asRoot ? error : withAdvice(error);
  }
}

/** Everything in it belongs to root, whoever this user is. */
async function writeRoot(archive: string): Promise<void> {
  const entries = pack();
  for (const { path, mode, text } of ROOT_FILES) entries.entry({ name: path.slice(1), mode, uid: 0, gid: 0 }, text);
  entries.finalize();
  try {
    await pipeline(entries, createWriteStream(archive, { mode: 0o600 }));
  } catch (cause) {
    throw ioError('write', archive, cause);
  }
}

/** Without root it is most often the namespace that is missing, and mmdebstrap does not say how to get one. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') return error;
  return new RdError(error.code, error.message, {
    cause: error,
    details: error.details,
    advice:
      'A user other than root needs the package uidmap and a range of ids in /etc/subuid and /etc/subgid: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.',
  });
}
