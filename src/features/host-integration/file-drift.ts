import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { DesiredFiles, FilesPart, UserFileChange } from '../../plan/user-files.ts';
import { previewKubeContext } from './kube-config.ts';
import { collected, reconcilePart } from './parts.ts';
import type { IntegrationTargets } from './targets.ts';

/** A file of the user that no longer has the content that the service put there, and the change that restores it. */
export interface FileDrift {
  part: FilesPart;
  change: UserFileChange;
}

/**
 * Returns the changes in the user's files since the service applied this state. They do not include a docker context that the user has selected or an
 * autostart entry of `rdctl setup`, which are the user's own choice.
 */
export async function fileDrift(applied: DesiredFiles, targets: IntegrationTargets): Promise<FileDrift[]> {
  const parts: FilesPart[] = ['path'];
  if (applied.autoStart) parts.push('autostart');
  if (applied.docker?.context === 'selected') parts.push('docker');
  const found = parts.map(async (part) => {
    const changes = await collected((dryRun) => reconcilePart(part, applied, targets, { dryRun }));
    return changes.map((change): FileDrift => ({ part, change }));
  });
  if (applied.kube?.context === 'present') {
    const changes = collected((dryRun) => previewKubeContext(false, targets, dryRun));
    found.push(changes.then((list) => list.map((change) => ({ part: 'kube', change }))));
  }
  return (await Promise.all(found)).flat();
}

/** Milliseconds to wait after a change, because editors write a file in several steps. */
const SETTLE_MS = 100;

/**
 * Calls back soon after one of these files was changed, created or removed, until the returned function is called. A directory that does not exist or
 * cannot be watched is skipped: its files are checked with the next event.
 */
export function watchFiles(files: readonly string[], onChange: () => void): () => void {
  const names = new Map<string, Set<string>>();
  for (const file of files) {
    const directory = dirname(file);
    names.set(directory, (names.get(directory) ?? new Set()).add(basename(file)));
  }
  let timer: NodeJS.Timeout | undefined;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      onChange();
    }, SETTLE_MS);
  };
  const watchers = [...names].flatMap(([directory, own]): FSWatcher[] => {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) => {
        if (name === null || own.has(name) || name === basename(directory)) soon();
      });
      return [watcher.on('error', () => watcher.close())];
    } catch {
      return [];
    }
  });
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
