import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from './inside.ts';
import { packageLicenses } from './licenses.ts';

/** Scoped, so that nobody else can have it. The scope is not registered. */
const NPM_NAME = '@rdctl/rdctl';

/** What the package says of itself: everything is bundled, so it has no dependencies and no scripts. */
function npmManifest(own: Record<string, unknown>): Record<string, unknown> {
  const { version, description, license, engines } = own;
  return {
    name: NPM_NAME,
    ...{ version, description, license, engines },
    bin: { rdctl: 'dist/rdctl.cjs', 'rdctl-app': 'dist/rdctl-app.cjs' },
    files: ['dist', 'schemas', 'examples', 'docs', 'NOTICES.txt'],
    publishConfig: { access: 'public' },
  };
}

/**
 * Builds the package for npm in a folder. Returns its name.
 * @param inside folders of the packages in it
 */
export function npmPackage(folder: string, inside: readonly string[]): string {
  const stage = mkdtempSync(join(folder, '.npm-'));
  try {
    // A code cache is of one release of Node on one kind of computer; the tool writes its own.
    execFileSync(process.execPath, ['build.mjs', '--no-cache', '--out-dir', join(stage, 'dist')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    for (const file of ['README.md', 'LICENSE']) copyFileSync(file, join(stage, file));
    writeFileSync(join(stage, 'NOTICES.txt'), packageLicenses(describe(inside)));
    for (const each of ['schemas', 'examples', 'docs']) {
      mkdirSync(join(stage, each));
      cpSync(each, join(stage, each), { recursive: true, filter: (path) => !path.endsWith('.ts') });
    }
    const manifest = npmManifest(JSON.parse(readFileSync('package.json', 'utf8')));
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: stage,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return JSON.parse(packed)[0].filename;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}
