import { describe } from './inside.ts';
import { packageLicenses } from './licenses.ts';
import { type Metafile, packagesInside } from './packages-inside.ts';

/** The licenses of the packages in `dist/`, of what esbuild says of its builds. `build.mjs` calls it. */
export function distLicenses(builds: readonly Metafile[]): string {
  return packageLicenses(describe(packagesInside(builds)));
}
