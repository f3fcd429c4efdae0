import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import type { PinnedReleases } from '../src/features/upgrade/pinned.ts';
import { lateBuiltins } from './late-builtins.ts';
import { packagesInside } from './packages-inside.ts';
import { runtimeProgram } from './runtime-package.ts';
import { ownTarget, type Target } from './targets.ts';

/** Modules that read their own place get this one: the place of the build would differ with the folder it runs in. */
const PLACE = '/rdctl';

/**
 * Builds the file of a target: the runtime with our program and its compiled code inside.
 * @param root the folder of this repository
 * @param pinned what `rdctl upgrade` of this file trusts without further ado
 * @returns the folders of the packages inside.
 */
export async function compile(target: Target, outfile: string, root = '.', pinned?: PinnedReleases): Promise<string[]> {
  const own = ownTarget();
  if (!own) throw new Error(`there is no compiler for ${process.platform} on ${process.arch}`);
  const compiler = runtimeProgram(own);
  const folder = mkdtempSync(join(dirname(outfile), '.build-'));
  // The name is in the file, so it is the same for all.
  const built = join(folder, target.format === 'pe' ? 'rdctl.exe' : 'rdctl');
  try {
    // The compiler of the runtime cannot be told to load parts of the runtime late.
    const { metafile } = await build({
      entryPoints: ['cli/standalone.ts'],
      absWorkingDir: resolve(root),
      outdir: join(folder, 'program'),
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      // Identifiers stay: stack traces of bug reports name functions.
      minifyWhitespace: true,
      minifySyntax: true,
      tsconfig: join(resolve(root), 'release/tsconfig.bundle.json'),
      define: {
        __dirname: JSON.stringify(PLACE),
        __filename: JSON.stringify(`${PLACE}/rdctl`),
        ...(pinned ? { RDCTL_PINNED_RELEASES: JSON.stringify(pinned) } : {}),
      },
      plugins: [lateBuiltins],
      legalComments: 'none',
      metafile: true,
      logLevel: 'warning',
    });
    execFileSync(
      compiler,
      [
        'build',
        'program/standalone.js',
        '--compile',
        '--bytecode',
        '--format=esm',
        '--splitting',
        '--minify-whitespace',
        // A program that users run anywhere must not read the configuration files of a project it happens to run in.
        '--no-compile-autoload-dotenv',
        '--no-compile-autoload-bunfig',
        '--no-compile-autoload-tsconfig',
        '--no-compile-autoload-package-json',
        '--reject-unresolved',
        `--target=${target.compilerTarget}`,
        `--compile-executable-path=${runtimeProgram(target)}`,
        `--outfile=${built}`,
      ],
      {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: process.env.PATH, HOME: folder, BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' },
      },
    );
    chmodSync(built, 0o755);
    renameSync(built, outfile);
    return packagesInside([metafile]);
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    throw new Error(`${basename(outfile)} could not be built: ${said}`, { cause: error });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
