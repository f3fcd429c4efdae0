import { DROP_IN, DROP_IN_IDENTITY } from '../product.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { shellWord } from './quoting.ts';
import { type IntegrationTargets, launcherOf } from './targets.ts';

/**
 * Writes the program that stands for this tool on the PATH: it starts the present Node with the present script, so that it works
 * where neither is on the PATH. In drop-in mode it says so itself: at login, and in scripts, nobody has set the variable. The directory is ours and goes with the rest of our files.
 * @throws RdError `ERR_IO` when it cannot be written.
 */
export async function writeLauncher(targets: IntegrationTargets): Promise<string> {
  const path = launcherOf(targets);
  const { self, platform, identity } = targets;
  const dropIn = identity === DROP_IN_IDENTITY;
  const text =
    platform === 'win32'
      ? `@echo off\r\n${dropIn ? `set "RDCTL_COMPAT=${DROP_IN}"\r\n` : ''}${self.map((word) => `"${word}"`).join(' ')} %*\r\n`
      : `#!/bin/sh\n${dropIn ? `export RDCTL_COMPAT=${DROP_IN}\n` : ''}exec ${self.map(shellWord).join(' ')} "$@"\n`;
  await writeFileAtomic(path, text, { mode: 0o755 });
  return path;
}
