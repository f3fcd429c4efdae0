import { rm } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import type { EngineName } from '../../driver.ts';
import type { ClusterEngine, Shell } from '../../shell.ts';
import type { Architecture, ArtifactStore } from './artifacts.ts';
import { type K3sPlaces, programOf } from './config.ts';
import { type K3sVersion, parseK3s } from './releases.ts';

export interface InstallParts {
  shell: Shell;
  places: K3sPlaces;
  artifacts: ArtifactStore;
  architecture: Architecture;
  engines: Readonly<Record<EngineName, ClusterEngine>>;
}

const VERSION_LIMIT_MS = 60_000;

/**
 * Installs the program of a release in the machine and its images in the engine, unless they are present. Leaves other releases alone. Returns the
 * program.
 * @throws RdError with the errors of `ArtifactStore.fetch`, and `ERR_DRIVER_TERMINAL` for a program that does not run in this machine.
 */
export async function install(
  { shell, places, artifacts, architecture, engines }: InstallParts,
  release: K3sVersion,
  engine: EngineName,
  signal: AbortSignal,
): Promise<string> {
  const program = programOf(places, release.text);
  // Check an existing program too: its write may have been cut short or hit a full disk.
  const works = (await runs(shell, program, release, signal)) === undefined;
  const marker = places.imagesOf(engine);
  const loaded = (await shell.read(marker))?.trim() === release.text;
  if (works && loaded) return program;

  shell.log('info', 'installing k3s', { release: release.text });
  const files = await artifacts.fetch(release, architecture, signal);
  if (!works) {
    await shell.copyIn(files.program, program, 0o755, signal);
    const why = await runs(shell, program, release, signal);
    if (why !== undefined) {
      await shell.remove(program);
      throw new RdError('ERR_DRIVER_TERMINAL', `${release.text} does not run in this machine: ${why}`, {
        advice: `It was built for ${architecture}. Choose another kubernetes.version, or check what the machine lacks.`,
      });
    }
  }
  if (loaded) return program;
  try {
    await engines[engine].loadImages(files.images, signal);
    await shell.write(marker, `${release.text}\n`);
  } catch (error) {
    // A list of allowed images may forbid it: pods then pull their images from registries, as far as the list allows.
    if (!(error instanceof RdError) || error.code !== 'ERR_FORBIDDEN') throw error;
    const reason = error.message;
    shell.log('warn', 'the images of the cluster were not loaded; its pods must pull them', { reason });
  }
  return program;
}

/** Removes the programs of all releases but one. */
export async function removeOthers({ shell, places }: Pick<InstallParts, 'shell' | 'places'>, release: K3sVersion) {
  const { stdout } = await shell.run(['ls', '-1', '--', places.programs], { accept: [0, 1, 2] });
  for (const name of stdout.split('\n')) {
    if (parseK3s(name) && name !== release.text) await shell.remove(`${places.programs}/${name}`);
  }
}

/** Returns the reason that the program does not match the release, or undefined if it does. */
async function runs(
  shell: Shell,
  program: string,
  release: K3sVersion,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { stdout } = await shell.run([program, '--version'], { signal, timeoutMs: VERSION_LIMIT_MS });
    const reported = /\bv\d+\.\d+\.\d+\+k3s\d+/.exec(stdout)?.[0];
    return reported === release.text ? undefined : `it reports ${reported ?? 'no k3s version'}`;
  } catch (error) {
    if (error instanceof RdError && (error.code === 'ERR_DRIVER_FAILED' || error.code === 'ERR_DRIVER_TERMINAL')) {
      return error.message;
    }
    throw error;
  }
}

/** The installed release. `unknown`: there is cluster data of an unknown version. */
export type Installed = K3sVersion | 'unknown' | undefined;

/** The release that the cluster's data belongs to. */
export interface InstalledRelease {
  /** Reads the release from the machine. */
  look(): Promise<Installed>;
  /** Returns the release of a machine that is off: its disk cannot have changed since the last observation, and the file moves with the disk. */
  recall(): Promise<Installed>;
  /** Called before the release may write into the data. */
  note(release: K3sVersion): Promise<void>;
  /** Called after the data was deleted. */
  forget(): Promise<void>;
}

async function readMemo(memo: string): Promise<Installed> {
  const text = await readIfThere(memo);
  return text === undefined ? undefined : (parseK3s(text.trim()) ?? 'unknown');
}

/** Returns the version in a memo, in the form of `versionOf`; undefined without data of a cluster. */
export async function recalledVersion(memo: string): Promise<string | undefined> {
  const installed = await readMemo(memo);
  return installed === undefined ? undefined : versionOf(installed);
}

/** Creates the record of the installed release. `memo`: a file on this host. */
export function installedRelease(shell: Shell, places: K3sPlaces, memo: string): InstalledRelease {
  async function saveMemo(installed: Installed): Promise<void> {
    const text = installed === undefined ? undefined : `${installed === 'unknown' ? installed : installed.text}\n`;
    if ((await readIfThere(memo)) === text) return;
    if (text === undefined) await rm(memo, { force: true });
    else await writeFileAtomic(memo, text);
  }

  const recall = () => readMemo(memo);

  return {
    async look() {
      const text = await shell.read(places.version);
      let installed: Installed = text === undefined ? undefined : parseK3s(text.trim());
      // Truncated, such as by a crash during a write: the next step had not begun, so the last observation holds.
      if (text !== undefined) installed ??= (await recall()) ?? 'unknown';
      if (text === undefined && (await shell.exists(places.server))) installed = 'unknown';
      await saveMemo(installed);
      return installed;
    },
    recall,
    async note(release) {
      // In the reverse order, a crash would leave data of a later release under the name of an earlier one.
      await shell.write(places.version, `${release.text}\n`);
      await saveMemo(release);
    },
    async forget() {
      await shell.remove(places.version);
      await saveMemo(undefined);
    },
  };
}

/** Returns the version in the form that the reconcile loop uses: `''` when unknown. */
export function versionOf(installed: Exclude<Installed, undefined>): string {
  return installed === 'unknown' ? '' : installed.version;
}
