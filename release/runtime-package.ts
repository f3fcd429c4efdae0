import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { RUNTIME_VERSION, type Target } from './targets.ts';

/** Packages are kept here, one folder for each version. */
const KEPT = process.env.RDCTL_TEST_CACHE
  ? join(process.env.RDCTL_TEST_CACHE, 'runtimes')
  : resolve('node_modules/.cache/rdctl/runtimes');

/**
 * Path of a target's runtime. The package is fetched with npm the first time, which is why a plain `npm ci` never downloads it, and used only
 * if it has the digest that this repository names.
 * @throws Error for another digest; nothing of it is kept or run.
 */
export function runtimeProgram(target: Target): string {
  const folder = join(KEPT, `${basename(target.package)}-${RUNTIME_VERSION}-${idOf(target)}`);
  const program = join(folder, 'package', target.program);
  if (existsSync(program)) return program;
  mkdirSync(KEPT, { recursive: true });
  const fresh = mkdtempSync(join(KEPT, '.new-'));
  try {
    const wanted = `${target.package}@${RUNTIME_VERSION}`;
    execFileSync(npm(), ['pack', '--silent', '--ignore-scripts', '--pack-destination', fresh, wanted], {
      cwd: fresh,
      stdio: ['ignore', 'ignore', 'inherit'],
      shell: process.platform === 'win32',
    });
    const [archive] = readdirSync(fresh);
    if (archive === undefined) throw new Error(`npm pack ${wanted} left no archive`);
    const integrity = `sha512-${createHash('sha512')
      .update(readFileSync(join(fresh, archive)))
      .digest('base64')}`;
    if (integrity !== target.integrity) {
      throw new Error(`${wanted} has the digest ${integrity} instead of ${target.integrity} (release/targets.ts)`);
    }
    execFileSync('tar', ['-xzf', archive], { cwd: fresh });
    rmSync(join(fresh, archive));
    if (!existsSync(join(fresh, 'package', target.program))) throw new Error(`${wanted} has no ${target.program}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
    return program;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** A folder of another digest is another folder. */
function idOf({ integrity }: Target): string {
  return createHash('sha256').update(integrity).digest('hex').slice(0, 12);
}

function npm(): string {
  return process.platform === 'win32' ? 'npm.cmd' : 'npm';
}
