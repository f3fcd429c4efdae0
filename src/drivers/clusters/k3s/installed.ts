import { rm } from 'node:fs/promises';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Shell } from '../../shell.ts';
import type { K3sPlaces } from './places.ts';
import { type K3sVersion, parseK3s } from './version.ts';

/** `unknown`: there is cluster data of an unknown version. */
export type Installed = K3sVersion | 'unknown' | undefined;

/** The release that the cluster's data belongs to. */
export interface InstalledRelease {
  /** Looks into the machine. */
  look(): Promise<Installed>;
  /** For a machine that is off: its disk cannot have changed since the last observation, and the file moves with the disk. */
  recall(): Promise<Installed>;
  /** Called before the release may write into the data. */
  note(release: K3sVersion): Promise<void>;
  /** Called after the data was deleted. */
  forget(): Promise<void>;
}

/** `memo` is a file on this host. */
export function installedRelease(shell: Shell, places: K3sPlaces, memo: string): InstalledRelease {
  async function memorise(installed: Installed): Promise<void> {
    const text = installed === undefined ? undefined : `${installed === 'unknown' ? installed : installed.text}\n`;
    if ((await readIfThere(memo)) === text) return;
    if (text === undefined) await rm(memo, { force: true });
    else await writeFileAtomic(memo, text);
  }

  async function recall(): Promise<Installed> {
    const text = await readIfThere(memo);
    return text === undefined ? undefined : (parseK3s(text.trim()) ?? 'unknown');
  }

  return {
    async look() {
      const text = await shell.read(places.version);
      let installed: Installed = text === undefined ? undefined : parseK3s(text.trim());
      // Truncated, such as by a crash during a write: the next step had not begun, so the last observation holds.
      if (text !== undefined) installed ??= (await recall()) ?? 'unknown';
      if (text === undefined) {
        const { exitCode } = await shell.run(['test', '-e', places.server], { accept: [0, 1] });
        if (exitCode === 0) installed = 'unknown';
      }
      await memorise(installed);
      return installed;
    },
    recall,
    async note(release) {
      // In the other order a crash would leave data of a later release under the name of an earlier one.
      await shell.write(places.version, `${release.text}\n`);
      await memorise(release);
    },
    async forget() {
      await shell.remove(places.version);
      await memorise(undefined);
    },
  };
}

/** In the form that the reconcile loop uses: `''` when unknown. */
export function versionOf(installed: Exclude<Installed, undefined>): string {
  return installed === 'unknown' ? '' : installed.version;
}
