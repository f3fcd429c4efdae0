import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';

const OUT = resolve('out');
const BUILD = 'npm run dist -- --target linux-x64 --deb';

/**
 * The Debian package for x64 that `npm run dist` left in `out/`; undefined without one, which is reported on standard error. With
 * `RDCTL_REQUIRE_REAL=1` it throws instead.
 */
export function debianPackageFile(): string | undefined {
  const names = existsSync(OUT) ? readdirSync(OUT) : [];
  const name = names.find((each) => /^rdctl_.*_amd64\.deb$/.test(each));
  if (name !== undefined) return resolve(OUT, name);
  const message = `tests with the Debian package cannot run: ${OUT} has none; build it: ${BUILD}`;
  if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
  process.stderr.write(`\nSKIPPED: ${message}\n`);
  return undefined;
}
