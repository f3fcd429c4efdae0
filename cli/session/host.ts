import { arch, release, totalmem } from 'node:os';
import type { LoadContext } from '../../profiles/document/load.ts';
import type { Host } from '../../src/settings/defaults.ts';
import type { Io } from '../command.ts';

/** Facts of this computer that defaults and rules depend on. Throws `ERR_USAGE` on an unsupported operating system. */
export function hostOf({ platform }: Pick<Io, 'platform'>): Host & { osRelease: string } {
  return { platform, arch: arch(), osRelease: release(), memoryBytes: totalmem() };
}

/** What documents are read and judged with. Throws as `hostOf`. */
export function documentContext(io: Io): LoadContext {
  const { platform, arch, osRelease } = hostOf(io);
  return { cwd: io.cwd, env: io.env, platform, arch, osRelease, readStdin: (limit) => io.readStdin(limit) };
}
