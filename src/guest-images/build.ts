import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RdError } from '../errors.ts';
import type { RunOptions, RunResult } from '../process/run.ts';
import { ioError } from '../storage/io-error.ts';
import type { GuestImage } from './image.ts';
import { FINISH_SCRIPT, KERNELS, type Kernel, LEFT_OUT, PACKAGES, ROOT_BYTES, ROOT_FILES, SUITE } from './recipe.ts';
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
  now(): number;
  signal: AbortSignal;
}

/** Installing packages over a slow line takes long, and shows nothing. */
const BUILD_MS = 60 * 60_000;
const CONVERT_MS = 10 * 60_000;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64' };

/**
 * Makes a guest image with mmdebstrap, as root or as any user that has user namespaces, and keeps it.
 * @throws RdError `ERR_DRIVER_TERMINAL` with the way to install a program that is missing; `ERR_DRIVER_FAILED` with the last lines
 *   of the one that failed; `ERR_IO`; `ERR_CANCELLED`. Nothing stays of an image that was not finished.
 */
export async function buildImage(input: BuildInput): Promise<GuestImage> {
  const { store, run, mirror, kernel = 'cloud', onPhase = () => undefined, now, signal } = input;
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
    const files = join(draft.directory, 'files');
    const finish = join(draft.directory, 'finish');
    await writeRoot(files);
    await writeScript(finish);
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
        `--customize-hook=${finish}`,
        SUITE,
        '-',
        ...(mirror === undefined ? [] : [mirror]),
      ],
      {
        signal,
        timeoutMs: BUILD_MS,
        maxOutput: 64 * 1024 * 1024,
        env: {
          ...process.env,
          RDCTL_FILES: files,
          RDCTL_RESULTS: draft.directory,
          RDCTL_ROOT_BYTES: String(ROOT_BYTES),
        },
      },
    );
    onPhase('writing the disk');
    const raw = join(draft.directory, 'disk.raw');
    const disk = join(draft.directory, 'disk.qcow2');
    await run(['qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, disk], { signal, timeoutMs: CONVERT_MS });
    await Promise.all([raw, files, finish].map((path) => rm(path, { recursive: true, force: true })));
    onPhase('checking');
    return await draft.keep(
      { name, architecture, rootBytes: ROOT_BYTES, created: new Date(now()).toISOString(), features },
      { kernel: 'vmlinuz', initrd: 'initrd', disk: 'disk.qcow2' },
      signal,
    );
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

async function writeRoot(directory: string): Promise<void> {
  for (const { path, mode, text } of ROOT_FILES) {
    const file = join(directory, path);
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o755 });
      await writeFile(file, text);
      // Without the mask of the user, who may keep files from others.
      await chmod(file, mode);
      for (let above = dirname(file); above.startsWith(directory); above = dirname(above)) await chmod(above, 0o755);
    } catch (cause) {
      throw ioError('write', file, cause);
    }
  }
}

async function writeScript(path: string): Promise<void> {
  try {
    await writeFile(path, FINISH_SCRIPT);
    await chmod(path, 0o755);
  } catch (cause) {
    throw ioError('write', path, cause);
  }
}
