import { writeFileAtomic } from '../storage/atomic-file.ts';
import { shellWord } from './quoting.ts';
import { type IntegrationTargets, launcherOf } from './targets.ts';

/**
 * Writes the program that stands for this tool on the PATH: it starts the present Node with the present script, so that it works
 * where neither is on the PATH. The directory is ours and goes with the rest of our files.
 * @throws RdError `ERR_IO` when it cannot be written.
 */
export async function writeLauncher(targets: IntegrationTargets): Promise<string> {
  const path = launcherOf(targets);
  const { self, platform } = targets;
  const text =
    platform === 'win32'
      ? `@echo off\r\n${self.map((word) => `"${word}"`).join(' ')} %*\r\n`
      : `#!/bin/sh\nexec ${self.map(shellWord).join(' ')} "$@"\n`;
  await writeFileAtomic(path, text, { mode: 0o755 });
  return path;
}
