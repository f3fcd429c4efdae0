import { lstat, rename } from 'node:fs/promises';
import { writeFileAtomic } from '../../os/atomic-file.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRegular } from '../../os/regular-file.ts';
import { DROP_IN, DROP_IN_IDENTITY, PRODUCT } from '../../product.ts';
import { shellWord } from './quoting.ts';
import { type IntegrationTargets, launcherOf } from './targets.ts';

/** Marker in every launcher of ours. */
const MARK = `written by ${PRODUCT.name}: it starts ${PRODUCT.name}`;
/** Launchers are some hundred bytes long; larger files are not launchers. */
const MAX_BYTES = 65_536;

/**
 * Writes the launcher for this tool on the PATH: it starts the current Node with the current script, so that it works where neither is on
 * the PATH. In drop-in mode it sets the variable, which is unset at login and in scripts. Renames a foreign program of the same name, such
 * as the compatible application's in drop-in mode. Call it only in directories that are ours or were adopted.
 * @returns the new name of a foreign program, if there was one.
 * @throws RdError `ERR_IO` when it cannot be written.
 */
export async function writeLauncher(targets: IntegrationTargets): Promise<{ kept?: string }> {
  const path = launcherOf(targets);
  const { self, platform, identity } = targets;
  const dropIn = identity === DROP_IN_IDENTITY;
  const text =
    platform === 'win32'
      ? `@echo off\r\nrem ${MARK}\r\n${dropIn ? `set "RDCTL_COMPAT=${DROP_IN}"\r\n` : ''}${self.map((word) => `"${word}"`).join(' ')} %*\r\n`
      : `#!/bin/sh\n# ${MARK}\n${dropIn ? `export RDCTL_COMPAT=${DROP_IN}\n` : ''}exec ${self.map(shellWord).join(' ')} "$@"\n`;
  const kept = await keepForeign(path);
  await writeFileAtomic(path, text, { mode: 0o755 });
  return kept === undefined ? {} : { kept };
}

/** A link is never ours, wherever it leads. */
async function keepForeign(path: string): Promise<string | undefined> {
  try {
    const found = await lookAt(path);
    if (!found) return undefined;
    if (found.isFile() && found.size <= MAX_BYTES && (await readRegular(path)).includes(MARK)) return undefined;
    for (let number = 1; ; number += 1) {
      const name = `${path}.before-${PRODUCT.name}${number === 1 ? '' : `-${number}`}`;
      if (await lookAt(name)) continue;
      await rename(path, name);
      return name;
    }
  } catch (cause) {
    throw ioError('keep', path, cause);
  }
}

async function lookAt(path: string) {
  return lstat(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw cause;
  });
}
